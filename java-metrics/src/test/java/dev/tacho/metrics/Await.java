package dev.tacho.metrics;

import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.function.Supplier;

/** Waiting in tests: for a condition, and no longer than {@value #SECONDS} s, after which the test fails. */
public final class Await {
  /** How long a test waits for anything. */
  public static final long SECONDS = 30;

  private static final long PAUSE_NANOS = 50_000;

  private Await() {}

  /**
   * Waits until a condition holds.
   *
   * @param what is awaited, for the failure
   */
  public static void until(String what, Callable<Boolean> condition) {
    var _ = value(what, () -> holds(what, condition), held -> held);
  }

  /**
   * Waits for a value.
   *
   * @param what is awaited, for the failure
   * @return the first for which the condition holds
   */
  public static <T> T value(String what, Supplier<T> supplier, Predicate<T> condition) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
    T value = supplier.get();
    while (!condition.test(value)) {
      if (System.nanoTime() - end > 0) {
        throw failure(what);
      }
      LockSupport.parkNanos(PAUSE_NANOS);
      value = supplier.get();
    }
    return value;
  }

  /** Waits until a latch is open. */
  public static void open(String what, CountDownLatch latch) {
    try {
      if (!latch.await(SECONDS, TimeUnit.SECONDS)) {
        throw failure(what);
      }
    } catch (InterruptedException e) {
      throw new AssertionError("interrupted while waiting until " + what, e);
    }
  }

  /** Waits until a thread has ended. */
  public static void ended(Thread thread) throws InterruptedException {
    thread.join(TimeUnit.SECONDS.toMillis(SECONDS));
    if (thread.isAlive()) {
      AssertionError failure = failure("thread " + thread.getName() + " has ended");
      failure.setStackTrace(thread.getStackTrace());
      throw failure;
    }
  }

  private static boolean holds(String what, Callable<Boolean> condition) {
    try {
      return condition.call();
    } catch (Exception e) {
      throw new AssertionError("while waiting until " + what, e);
    }
  }

  private static AssertionError failure(String what) {
    return new AssertionError("waited for " + SECONDS + " s until " + what);
  }
}
