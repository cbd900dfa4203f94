package dev.tacho.server;

import dev.tacho.engine.ConfigurationException;
import dev.tacho.engine.EngineConfig;
import dev.tacho.engine.EngineOption;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;

/** The engine's options on the command line, made from the one table {@link EngineOption}. */
final class EngineOptions {
  /** Variables that begin with TACHO_ and are no engine option. */
  private static final Set<String> OTHER_VARIABLES =
      Set.of("TACHO_JAVA_HOME", "TACHO_JAVA_OPTS", Logging.LEVEL_VARIABLE, "TACHO_MAX_ISA");

  private EngineOptions() {}

  /**
   * Adds the options to a command.
   *
   * @param taken options whose names the command uses itself
   */
  static void addTo(CommandSpec command, Set<EngineOption> taken) {
    for (EngineOption option : EnumSet.allOf(EngineOption.class)) {
      if (!taken.contains(option)) {
        command.addOption(spec(option));
        if (option.type() == EngineOption.Type.SWITCH && Boolean.parseBoolean(option.defaultText())) {
          command.addOption(
              OptionSpec.builder(negative(option)).type(boolean.class).description("the opposite").build());
        }
      }
    }
  }

  private static OptionSpec spec(EngineOption option) {
    String fallback =
        option.defaultText().isEmpty() ? "" : " (default " + option.defaultText() + ")";
    OptionSpec.Builder builder =
        OptionSpec.builder(positive(option)).type(String.class).description(option.help() + fallback);
    if (option == EngineOption.MODEL) {
      builder.names(positive(option), "-m");
    }
    if (option.type() == EngineOption.Type.SWITCH) {
      return builder.arity("0..1").fallbackValue("true").paramLabel("true|false").build();
    }
    return builder.paramLabel(label(option)).build();
  }

  private static String label(EngineOption option) {
    return switch (option.type()) {
      case STRING -> "NAME";
      case WORD -> String.join("|", option.words());
      case PATH -> "FILE";
      case COUNT, INTEGER, NUMBER -> "N";
      case BUCKETS -> "JSON";
      case SWITCH -> "true|false";
      case MEMORY -> "SIZE";
      case SPECULATION -> "JSON";
      case DURATION -> "TIME";
    };
  }

  private static String positive(EngineOption option) {
    return "--" + option.optionName();
  }

  private static String negative(EngineOption option) {
    return "--no-" + option.optionName();
  }

  /** The configuration that the command line and, below it, the environment give. */
  static EngineConfig config(ParseResult parsed, Map<String, String> environment) {
    return given(parsed, EngineConfig.builder()).environment(environment, OTHER_VARIABLES).build();
  }

  /**
   * Adds what the command line says to a configuration.
   *
   * @throws ConfigurationException if it says of a switch two things
   */
  static EngineConfig.Builder given(ParseResult parsed, EngineConfig.Builder builder) {
    for (EngineOption option : EnumSet.allOf(EngineOption.class)) {
      if (parsed.hasMatchedOption(positive(option))
          && parsed.matchedOption(positive(option)).type() == String.class) {
        builder.set(option, parsed.matchedOptionValue(positive(option), ""));
      }
      if (parsed.hasMatchedOption(negative(option))) {
        if (parsed.hasMatchedOption(positive(option))) {
          throw new ConfigurationException(
              option.optionName(), "does not go with " + negative(option) + ", which says the same or the opposite");
        }
        builder.set(option, Boolean.toString(!parsed.matchedOptionValue(negative(option), true)));
      }
    }
    return builder;
  }
}
