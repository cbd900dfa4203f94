package dev.tacho.engine;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/** The time that the requests of an engine have to end while it is being closed. Any thread. */
final class Drain {
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private long deadlineNanos;
  private boolean limited;

  /** Allows at most so long from now; the shortest time that anybody asked for counts. */
  void shorten(Duration time) {
    long deadline = System.nanoTime() + Math.clamp(TimeUnit.NANOSECONDS.convert(time), 0, Long.MAX_VALUE / 4);
    lock.lock();
    try {
      if (!limited || deadline - deadlineNanos < 0) {
        limited = true;
        deadlineNanos = deadline;
        changed.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Something of what is waited for may have changed. */
  void changed() {
    lock.lock();
    try {
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /**
   * Waits until the time is over, or what is waited for has come; after {@link #shorten}. An interrupt ends it.
   *
   * @param done what is waited for
   */
  void await(BooleanSupplier done) {
    lock.lock();
    try {
      long left = deadlineNanos - System.nanoTime();
      while (left > 0 && !done.getAsBoolean()) {
        var _ = changed.awaitNanos(left);
        left = deadlineNanos - System.nanoTime();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      lock.unlock();
    }
  }
}
