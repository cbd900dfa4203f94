package dev.tacho.engine;

/** The engine was closed before or while the request was served. */
public final class EngineClosedException extends EngineException {
  private static final long serialVersionUID = 1L;

  /** The engine is closed. */
  public EngineClosedException() {
    super("the engine is closed");
  }
}
