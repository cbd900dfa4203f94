package dev.tacho.metrics;

import java.util.concurrent.TimeUnit;

/** How long tests that try to break something by trying often go on: 20 s together, or {@code tacho.stress.seconds}. */
public final class StressTime {
  private static final int SECONDS = Integer.getInteger("tacho.stress.seconds", 20);

  private StressTime() {}

  /** When a test that gets a share of the time is to end, on {@link System#nanoTime}. */
  public static long end(double share) {
    return System.nanoTime() + (long) (share * TimeUnit.SECONDS.toNanos(SECONDS));
  }

  /** True if that time has come. */
  public static boolean isOver(long end) {
    return System.nanoTime() - end >= 0;
  }
}
