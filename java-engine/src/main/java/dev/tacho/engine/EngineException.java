package dev.tacho.engine;

/** What went wrong in the engine, as a type with fields; the message says the same in words. */
public abstract sealed class EngineException extends RuntimeException
    permits OverloadedException,
        PromptTooLongException,
        UnsupportedException,
        ModelFormatException,
        EngineDeadException,
        EngineClosedException,
        InvalidRequestException,
        RequestFailedException,
        ConfigurationException {
  private static final long serialVersionUID = 1L;

  EngineException(String message) {
    super(message);
  }

  EngineException(String message, Throwable cause) {
    super(message, cause);
  }
}
