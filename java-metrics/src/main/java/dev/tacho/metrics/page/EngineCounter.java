package dev.tacho.metrics.page;

/**
 * The cells of an engine's {@link CounterPage}: running totals that the engine keeps beside its events, from which
 * counters are put right after a loss, and counts of what never becomes an event. Ids are stable.
 */
public enum EngineCounter {
  /** Requests accepted, each of n counted. */
  ACCEPTED(0),
  /** Sequences ended, by reason. */
  FINISHED_STOP(1),
  /** See {@link #FINISHED_STOP}. */
  FINISHED_LENGTH(2),
  /** See {@link #FINISHED_STOP}. */
  FINISHED_ABORT(3),
  /** See {@link #FINISHED_STOP}. */
  FINISHED_ERROR(4),
  /** See {@link #FINISHED_STOP}. */
  FINISHED_REPETITION(5),
  /** Prompt tokens of sequences that gave a first output. */
  PROMPT_TOKENS(6),
  /** Generated tokens. */
  GENERATION_TOKENS(7),
  /** Preemptions. */
  PREEMPTIONS(8),
  /** Requests refused because too many requests are unfinished. */
  REJECTED_REQUESTS(9),
  /** Requests refused because too many prompt tokens are queued. */
  REJECTED_TOKENS(10),
  /** Number of the engine's {@link EngineLifecycle}. A state, not a count. */
  LIFECYCLE(11),
  /** Nanoseconds between two steps in which the workers had nothing to do although there was work. */
  BUBBLE_NANOS(12);

  private final int id;

  EngineCounter(int id) {
    this.id = id;
  }

  /** The cell's number. */
  public int id() {
    return id;
  }
}
