package dev.tacho.engine.scheduler;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The sequences that wait for admission, in the order of the policy. While a step is planned, some may be passed over;
 * they keep their places. Engine thread only.
 */
interface WaitingQueue {
  /** Adds a new sequence. */
  void add(Sequence sequence);

  /** Adds a preempted sequence: it comes before those that never ran, if the policy looks at that at all. */
  void addPreempted(Sequence sequence);

  /** The next one that has not been passed over, or null. */
  @Nullable Sequence peek();

  /** Passes over the one that {@link #peek} gave. */
  void passOver(Sequence sequence);

  /** Ends a step: all that were passed over are candidates again. */
  void endPass();

  /** Takes a sequence out, wherever it stands. */
  void remove(Sequence sequence);

  /** The one that entered last the longest time ago, of the first {@code look} at least; null if it is empty. */
  @Nullable Sequence longestWaiting(int look);

  /** Sequences in it, those passed over included. */
  int size();

  /** All of them, next first; for tests and questions, not for a step. */
  List<Sequence> ordered();
}
