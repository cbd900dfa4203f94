package dev.tacho.engine;

/** The engine has failed and serves no more; the cause says why. */
public final class EngineDeadException extends EngineException {
  private static final long serialVersionUID = 1L;

  /**
   * @param cause what ended the engine
   */
  public EngineDeadException(Throwable cause) {
    super("the engine is dead: " + cause, cause);
  }
}
