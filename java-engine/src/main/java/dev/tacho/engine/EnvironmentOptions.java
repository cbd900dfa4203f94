package dev.tacho.engine;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** The options that environment variables set. */
final class EnvironmentOptions {
  private static final String PREFIX = "TACHO_";

  /** Variables that Kubernetes sets for the services of a namespace. */
  private static final Pattern SERVICE_LINK = Pattern.compile("TACHO(_.*)?_(SERVICE_(HOST|PORT.*)|PORT(_\\d+_.*)?)");

  private EnvironmentOptions() {}

  /**
   * Finds them.
   *
   * @param environment all variables
   * @param others names with our prefix that somebody else reads
   * @return texts in the syntax of their options
   * @throws ConfigurationException if a variable with the prefix belongs to no option; names the nearest
   */
  static Map<EngineOption, String> find(Map<String, String> environment, Set<String> others) {
    Map<EngineOption, String> found = new EnumMap<>(EngineOption.class);
    for (Map.Entry<String, String> variable : environment.entrySet()) {
      String name = variable.getKey();
      if (!name.startsWith(PREFIX) || others.contains(name) || SERVICE_LINK.matcher(name).matches()) {
        continue;
      }
      String key = name.substring(PREFIX.length()).toLowerCase(Locale.ROOT);
      EngineOption option = EngineOption.find(key);
      if (option == null) {
        throw new ConfigurationException(
            key.replace('_', '-'),
            "there is no such option, but the environment sets "
                + name
                + "; the nearest variable is "
                + EngineOption.nearest(key).environmentName());
      }
      found.put(option, variable.getValue());
    }
    return found;
  }

  /**
   * Does something with options; if one of them is wrong whose value a variable gave, the variable is named.
   *
   * @param fromEnvironment options that variables gave
   */
  static <T> T naming(Set<EngineOption> fromEnvironment, Supplier<T> step) {
    try {
      return step.get();
    } catch (ConfigurationException e) {
      EngineOption option = EngineOption.find(e.option());
      throw option != null && fromEnvironment.contains(option) ? e.setBy(option.environmentName()) : e;
    }
  }
}
