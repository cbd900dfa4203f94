package dev.tacho.metrics.collector;

import dev.tacho.metrics.ring.EventRing;

/**
 * How long a ring may be left alone. Each turn of the collector takes a core from the engine's workers for a while, and
 * finds its memory in no cache, so turns are as seldom as the ring allows: at the rate at which records came of late
 * it fills by a quarter of its first segment until the next turn.
 *
 * <p>The longest rest has to do for a rate that nobody could foresee. An engine of 2,500 steps a second, each of 256
 * sequences with an output, writes 48 bytes for a step, 8 for each of its tokens and 32 for its snapshot: 2,128 a step
 * and 5.3 MB a second, or 0.53 MB in 100 milliseconds: half of a first segment of {@value
 * EventRing#DEFAULT_FIRST_BYTES} bytes. At twice that rate the ring grows, at six times that rate it can lose records.
 * The output thread writes 24 bytes a step, 6,000 in that time, a tenth of its ring.
 *
 * <p>Used under the collector's lock.
 */
final class RingPace {
  /** The rest of an idle ring. Values that others read without a drain are that old at most. */
  static final long LONGEST_NANOS = 100_000_000;

  /** Shorter ones would cost more than they save. */
  static final long SHORTEST_NANOS = 5_000_000;

  private static final int PARTS = 4;

  private final EventRing ring;
  private long tail;
  private long nanos;

  /**
   * The pace of a ring that was just made.
   *
   * @param ring whose tail is looked at
   * @param nanos now, monotonic
   */
  RingPace(EventRing ring, long nanos) {
    this.ring = ring;
    this.nanos = nanos;
  }

  /**
   * The rest until the next turn, from what was written since the last one, whoever has read it meanwhile; the
   * shortest while more than half of the first segment is unread, as records wait for others.
   *
   * @param now monotonic
   * @return nanoseconds, from {@link #SHORTEST_NANOS} to {@link #LONGEST_NANOS}
   */
  long restNanos(long now) {
    long written = ring.tailAcquire() - tail;
    long passed = now - nanos;
    tail += written;
    nanos = now;
    if (tail - ring.headAcquire() > ring.firstBytes() / 2) {
      return SHORTEST_NANOS;
    }
    if (written == 0) {
      return LONGEST_NANOS;
    }
    double rest = (double) ring.firstBytes() / PARTS * passed / written;
    return (long) Math.clamp(rest, (double) SHORTEST_NANOS, (double) LONGEST_NANOS);
  }
}
