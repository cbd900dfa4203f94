package dev.tacho.engine;

/** An engine option that is unknown, out of range, or does not go together with the others or the machine. */
public final class ConfigurationException extends EngineException {
  private static final long serialVersionUID = 1L;

  private final String option;
  private final String problem;

  /**
   * @param option the option as on the command line, e.g. {@code "kv-cache-memory"}
   * @param problem what is wrong, with the value and the limit
   */
  public ConfigurationException(String option, String problem) {
    this("--" + option, option, problem);
  }

  private ConfigurationException(String named, String option, String problem) {
    super(named + ": " + problem);
    this.option = option;
    this.problem = problem;
  }

  /** The same, naming the environment variable that the value came from. */
  ConfigurationException setBy(String variable) {
    ConfigurationException named = new ConfigurationException(variable + " (--" + option + ")", option, problem);
    named.initCause(this);
    return named;
  }

  /** The option as on the command line, without dashes before it. */
  public String option() {
    return option;
  }
}
