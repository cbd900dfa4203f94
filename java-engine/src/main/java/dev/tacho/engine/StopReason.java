package dev.tacho.engine;

/** What exactly ended a completion, where its finish reason alone does not say it. */
public sealed interface StopReason {
  /**
   * A stop string of the request was generated.
   *
   * @param text the string, as the request gave it; not part of the completion's text
   */
  record StopString(String text) implements StopReason {}

  /**
   * A token id from the request's stop list was generated.
   *
   * @param tokenId the id
   */
  record StopToken(int tokenId) implements StopReason {}

  /**
   * The request was aborted.
   *
   * @param cause {@code cancelled}, {@code slow_reader}, {@code queue_timeout}, or {@code failed} if another part of
   *     the request did
   */
  record Aborted(String cause) implements StopReason {}
}
