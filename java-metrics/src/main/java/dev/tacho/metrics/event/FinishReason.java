package dev.tacho.metrics.event;

/**
 * Why a request ended. Every accepted request ends in exactly one of these; {@link #label()} is the value of the metric
 * label {@code finished_reason}.
 */
public enum FinishReason {
  /** An end-of-text token, a stop token or a stop string. */
  STOP(0, "stop"),
  /** {@code max_tokens} or the context length was reached. */
  LENGTH(1, "length"),
  /** The client, a deadline or the closing of the engine ended it. */
  ABORT(2, "abort"),
  /** The request or the step it was in failed. */
  ERROR(3, "error"),
  /** The output repeated itself beyond the request's own limit. */
  REPETITION(4, "repetition");

  private static final FinishReason[] BY_ID = values();

  private final int id;
  private final String label;

  FinishReason(int id, String label) {
    this.id = id;
    this.label = label;
  }

  /** The stable number in event records. */
  public int id() {
    return id;
  }

  /** The value of the label {@code finished_reason}. */
  public String label() {
    return label;
  }

  /** The reason with this number. */
  public static FinishReason of(int id) {
    if (id < 0 || id >= BY_ID.length) {
      throw new IllegalArgumentException("finish reason " + id + " is not in [0, " + BY_ID.length + ")");
    }
    return BY_ID[id];
  }
}
