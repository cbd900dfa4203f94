package dev.tacho.engine;

/** A request with a parameter outside its range; names the parameter as the OpenAI API does. */
public final class InvalidRequestException extends EngineException {
  private static final long serialVersionUID = 1L;

  private final String parameter;

  /**
   * @param parameter the parameter, e.g. {@code "temperature"}
   * @param problem what is wrong with it, with the value and the limit
   */
  public InvalidRequestException(String parameter, String problem) {
    super(parameter + ": " + problem);
    this.parameter = parameter;
  }

  /** The parameter. */
  public String parameter() {
    return parameter;
  }
}
