package dev.tacho.engine;

/** A request that ended with an error of its own or of the step it was in; the engine serves on. */
public final class RequestFailedException extends EngineException {
  private static final long serialVersionUID = 1L;

  private final String requestId;

  /**
   * @param requestId the request
   * @param cause what failed
   */
  public RequestFailedException(String requestId, Throwable cause) {
    super("request " + requestId + " failed: " + cause, cause);
    this.requestId = requestId;
  }

  /** The request. */
  public String requestId() {
    return requestId;
  }
}
