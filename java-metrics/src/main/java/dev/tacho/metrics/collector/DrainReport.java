package dev.tacho.metrics.collector;

/**
 * How an engine's feed stood after a drain. Times are nanoseconds of the engine's monotonic clock.
 *
 * @param nanos when the drain ended
 * @param ringFull times that the engine's rings were full
 * @param eventsLost records that they dropped
 * @param restarts times that reading them began anew
 * @param events records read, both rings together
 * @param drainNanos time spent in draining
 * @param lastStepNanos when the last step that was read built its outputs, or {@link #NONE}
 * @param longestRunningNanos when the open sequence that was scheduled first was scheduled, or {@link #NONE}
 * @param longestWaitingNanos since when the sequence waits whose present wait is the longest, or {@link #NONE}
 */
public record DrainReport(long nanos, long ringFull, long eventsLost, long restarts, long events, long drainNanos,
    long lastStepNanos, long longestRunningNanos, long longestWaitingNanos) {
  /** No such time. */
  public static final long NONE = Long.MIN_VALUE;

  /** Nothing was ever drained. */
  public static final DrainReport EMPTY = new DrainReport(0, 0, 0, 0, 0, 0, NONE, NONE, NONE);

  /** Seconds since one of the times; 0 if there is none. */
  public double secondsSince(long since) {
    return since == NONE ? 0 : Math.max(0, nanos - since) / 1e9;
  }
}
