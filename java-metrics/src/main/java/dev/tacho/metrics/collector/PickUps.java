package dev.tacho.metrics.collector;

import java.util.ArrayDeque;
import java.util.Arrays;

/**
 * What the output ring said of steps whose records have not been read yet: when each was picked up, and which sequences
 * a stop string ended there. One thread.
 */
final class PickUps {
  private final ArrayDeque<PickUp> waiting = new ArrayDeque<>();
  private final ArrayDeque<PickUp> spare = new ArrayDeque<>();

  /** A step was picked up, and with it every earlier one. */
  void add(long step, long nanos) {
    PickUp next = spare.isEmpty() ? new PickUp() : spare.removeLast();
    next.step = step;
    next.nanos = nanos;
    next.stoppedCount = 0;
    waiting.addLast(next);
  }

  /** A sequence was ended by a stop string in the step added last; slot and generation as in the word of a record. */
  void addStopped(long sequence) {
    PickUp last = waiting.peekLast();
    if (last != null) {
      last.addStopped(sequence);
    }
  }

  /** Moves to a step, past those before it. Returns false if it has not been picked up. */
  boolean moveTo(long step) {
    PickUp next = waiting.peekFirst();
    while (next != null && next.step < step) {
      spare.addLast(waiting.removeFirst());
      next = waiting.peekFirst();
    }
    return next != null;
  }

  /** When the step that was moved to was picked up. */
  long nanos() {
    return waiting.getFirst().nanos;
  }

  /** True if a stop string ended a sequence in this step, which was moved to. */
  boolean isStopped(long step, long sequence) {
    PickUp next = waiting.peekFirst();
    if (next == null || next.step != step) {
      return false;
    }
    for (int i = 0; i < next.stoppedCount; i++) {
      if (next.stopped[i] == sequence) {
        return true;
      }
    }
    return false;
  }

  /** One of them. */
  private static final class PickUp {
    long step;
    long nanos;
    long[] stopped = new long[8];
    int stoppedCount;

    void addStopped(long sequence) {
      if (stoppedCount == stopped.length) {
        stopped = Arrays.copyOf(stopped, stoppedCount * 2);
      }
      stopped[stoppedCount++] = sequence;
    }
  }
}
