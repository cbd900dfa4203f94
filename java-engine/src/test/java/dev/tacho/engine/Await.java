package dev.tacho.engine;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** Waits for what another thread does, and fails with its name if that takes too long. */
public final class Await {
  private static final long SECONDS = 30;
  private static final long POLL_NANOS = 50_000;

  private Await() {}

  /** Returns once the condition holds. */
  public static void until(String what, BooleanSupplier condition) {
    var _ = value(what, condition::getAsBoolean, held -> held);
  }

  /** The first value for which the condition holds. */
  public static <T> T value(String what, Supplier<T> supplier, Predicate<T> condition) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
    T value = supplier.get();
    while (!condition.test(value)) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError("not within " + SECONDS + " s: " + what + "; last: " + value);
      }
      LockSupport.parkNanos(POLL_NANOS);
      value = supplier.get();
    }
    return value;
  }
}
