package dev.tacho.engine;

import org.jspecify.annotations.Nullable;

/**
 * The text side of one sequence: from token ids to text that may be shown. Works on a batch at a time: {@link #begin},
 * its tokens, {@link #flush} at the end of the sequence, then {@link #takeText}. Output thread only, once it is made.
 */
final class SequenceOutput {
  private final TextCodec.TextStream stream;
  private final StopStringFilter filter;
  private final int minTokens;
  private final StringBuilder text = new StringBuilder();
  private int tokens;
  private int newTokens;
  private @Nullable RuntimeException fault;
  private boolean ended;

  /**
   * @param stream makes text of tokens
   * @param filter finds stop strings
   * @param minTokens tokens in which no stop string is looked for
   */
  SequenceOutput(TextCodec.TextStream stream, StopStringFilter filter, int minTokens) {
    this.stream = stream;
    this.filter = filter;
    this.minTokens = minTokens;
  }

  /** Begins a batch. */
  void begin() {
    text.setLength(0);
    newTokens = 0;
  }

  /**
   * Takes a token.
   *
   * @param id the token
   * @param silent it ends the sequence and has no text of its own
   */
  void append(int id, boolean silent) {
    tokens++;
    newTokens++;
    String piece = silent ? "" : stream.append(id);
    text.append(tokens > minTokens ? filter.append(piece) : filter.pass(piece));
  }

  /** Nothing follows: takes what was waiting for more. */
  void flush() {
    text.append(filter.pass(stream.flush()));
  }

  /** The text of the batch; may be taken once. */
  String takeText() {
    String taken = text.toString();
    text.setLength(0);
    return taken;
  }

  /** Tokens of the batch, those behind a stop string not counted. */
  int newTokens() {
    return newTokens;
  }

  /** The stop string that was found, or null. */
  @Nullable String stopString() {
    return filter.found();
  }

  /** Notes that the text could not be made. */
  void failed(RuntimeException cause) {
    fault = cause;
  }

  /** Why the text could not be made, or null. */
  @Nullable RuntimeException fault() {
    return fault;
  }

  /** Nothing more of it is looked at. */
  void markEnded() {
    ended = true;
  }

  /** True if the sequence has ended for the outside; what the engine still brings is not looked at. */
  boolean ended() {
    return ended;
  }
}
