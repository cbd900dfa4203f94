package dev.tacho.engine;

import java.util.PriorityQueue;
import org.jspecify.annotations.Nullable;

/**
 * The requests that will not wait longer than they said, next deadline first. A request whose first sequence is
 * admitted in time stays in here until its deadline, or until so many others have come that it pays to clear up. Engine
 * thread only.
 */
final class QueueDeadlines {
  private static final int CLEAR_UP_AT_LEAST = 64;

  private final PriorityQueue<Generation> next =
      new PriorityQueue<>((a, b) -> Long.compare(a.queueDeadlineNanos() - b.queueDeadlineNanos(), 0));
  private int clearUpAt = CLEAR_UP_AT_LEAST;

  /** Adds a request that has entered the queue, if it has a deadline. */
  void add(Generation generation) {
    if (!generation.hasQueueDeadline()) {
      return;
    }
    if (next.size() >= clearUpAt) {
      next.removeIf(old -> !waits(old));
      clearUpAt = Math.max(CLEAR_UP_AT_LEAST, 2 * next.size());
    }
    next.add(generation);
  }

  /** Takes a request out that has waited too long; null if there is none. */
  @Nullable Generation poll(long nanos) {
    while (nanosLeft(nanos) <= 0) {
      Generation due = next.remove();
      if (waits(due)) {
        return due;
      }
    }
    return null;
  }

  /** Time until {@link #poll} may give something; the largest number if nothing is in here. */
  long nanosLeft(long nanos) {
    Generation first = next.peek();
    return first == null ? Long.MAX_VALUE : first.queueDeadlineNanos() - nanos;
  }

  /** True if none of its sequences has ever been admitted, and one still may be. */
  private static boolean waits(Generation generation) {
    boolean live = false;
    for (RequestRecord record : generation.records()) {
      if (record.scheduledNanos() != 0) {
        return false;
      }
      live |= record.isLive();
    }
    return live;
  }
}
