package dev.tacho.engine;

import java.time.Duration;

/** A request refused because a queue is full; it never became a request. */
public final class OverloadedException extends EngineException {
  private static final long serialVersionUID = 1L;

  private final String limitName;
  private final long limit;
  private final long current;
  private final Duration retryAfter;

  /**
   * @param limitName the option that sets the limit, e.g. {@code "max_num_queued_reqs"}
   * @param limit its value
   * @param current what is there now, in the limit's unit
   * @param retryAfter when to try again
   */
  public OverloadedException(String limitName, long limit, long current, Duration retryAfter) {
    super("the engine is full: " + limitName + " is " + limit + " and " + current + " are there");
    this.limitName = limitName;
    this.limit = limit;
    this.current = current;
    this.retryAfter = retryAfter;
  }

  /** The option that sets the limit. */
  public String limitName() {
    return limitName;
  }

  /** The limit's value. */
  public long limit() {
    return limit;
  }

  /** What is there now, in the limit's unit. */
  public long current() {
    return current;
  }

  /**
   * When to try again, from 1 to 60 seconds: for sequences, when enough of them will have ended; for prompt tokens,
   * when those that wait will have been computed; both at the rate of the last 10 to 20 seconds.
   */
  public Duration retryAfter() {
    return retryAfter;
  }
}
