package dev.tacho.engine;

/**
 * How things stand with a request, and why. Of a request for several completions it is about the first one that waits,
 * or else the first one that has not ended.
 *
 * @param requestId the request
 * @param state what it does
 * @param position its place in the queue, 1 for the next one; 0 if it does not wait
 * @param blocksNeeded KV blocks that it lacks for the tokens that it has, those in the prefix cache not deducted
 * @param blocksFree KV blocks that nobody uses
 * @param reason why it is in this state, in words
 */
public record RequestExplanation(
    String requestId, State state, int position, long blocksNeeded, int blocksFree, String reason) {
  /** What a request does. */
  public enum State {
    /** Its prompt is made into tokens, or on the way to the engine. */
    ENTERING,
    /** It waits for its first step. */
    WAITING,
    /** It waits again: others needed its KV blocks. */
    PREEMPTED,
    /** It takes part in steps. */
    RUNNING,
    /** The engine has ended it; its last tokens are on the way to the reader. */
    ENDING
  }
}
