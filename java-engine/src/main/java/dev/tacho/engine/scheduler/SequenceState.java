package dev.tacho.engine.scheduler;

/** Where a sequence is in its life. */
public enum SequenceState {
  /** Made, not yet in the scheduler. */
  NEW,
  /** In the queue, but something else than room is missing, say a grammar that is still being compiled. */
  BLOCKED,
  /** In the queue, never scheduled. */
  WAITING,
  /** Admitted: takes part in steps. */
  RUNNING,
  /** Back in the queue without its blocks; its tokens will be computed again. */
  PREEMPTED,
  /** Ended, with a finish reason. */
  FINISHED
}
