package dev.tacho.engine;

import java.util.concurrent.atomic.AtomicLong;

/**
 * How much has been done a second of late: a sum over the present and the last of two windows, divided by the time that
 * they cover. Any thread; no lock. What two threads add at the very moment at which a window ends may be counted in
 * either.
 */
final class RecentRate {
  private static final long WINDOW_NANOS = 10_000_000_000L;

  private final AtomicLong windowStart;
  private final AtomicLong present = new AtomicLong();
  private volatile long last;
  private volatile boolean hasLast;

  /**
   * @param nanos now
   */
  RecentRate(long nanos) {
    windowStart = new AtomicLong(nanos);
  }

  /** So much has been done. */
  void add(long amount, long nanos) {
    roll(nanos);
    present.addAndGet(amount);
  }

  /** Amount a second over the last 10 to 20 seconds, or since the beginning; 0 if nothing was done. */
  double perSecond(long nanos) {
    roll(nanos);
    long covered = nanos - windowStart.get() + (hasLast ? WINDOW_NANOS : 0);
    return (last + present.get()) * 1e9 / Math.max(covered, 1_000_000_000L);
  }

  private void roll(long nanos) {
    long start = windowStart.get();
    long passed = nanos - start;
    if (passed < WINDOW_NANOS || !windowStart.compareAndSet(start, start + passed - passed % WINDOW_NANOS)) {
      return;
    }
    long done = present.getAndSet(0);
    last = passed < 2 * WINDOW_NANOS ? done : 0;
    hasLast = true;
  }
}
