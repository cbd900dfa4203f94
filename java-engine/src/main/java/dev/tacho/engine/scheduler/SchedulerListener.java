package dev.tacho.engine.scheduler;

import dev.tacho.metrics.event.FinishReason;

/**
 * Learns what happens to sequences, at the moment it happens, on the engine thread. An implementation must be quick,
 * must not allocate and must not call the scheduler.
 *
 * <p>Of one sequence: queued; then scheduled, and preempted and scheduled again any number of times; tokens; finished,
 * exactly once, last.
 */
public interface SchedulerListener {
  /** Hears nothing. */
  SchedulerListener NONE = new SchedulerListener() {};

  /** The sequence entered the queue. */
  default void queued(Sequence sequence, long nanos) {}

  /** The sequence was admitted to a step, for the first time or after a preemption. */
  default void scheduled(Sequence sequence, long nanos) {}

  /** The sequence lost its KV blocks and went back to the queue. */
  default void preempted(Sequence sequence, long nanos) {}

  /**
   * The prefix cache was asked at an admission; called before {@link #scheduled}.
   *
   * @param sequence the sequence
   * @param queryTokens tokens looked for: all it has
   * @param hitTokens tokens found
   * @param resumed it was preempted before; such look-ups are not part of the hit rate
   */
  default void prefixCacheQueried(Sequence sequence, int queryTokens, int hitTokens, boolean resumed) {}

  /** The prefix cache was emptied. */
  default void prefixCacheReset() {}

  /** The output of a step begins; {@code batchNanos} is the time of all its tokens. */
  default void outputsBegin(StepPlan plan, long batchNanos) {}

  /**
   * How the prompt was computed; just before the first {@link #tokens} of the sequence.
   *
   * @param sequence the sequence
   * @param promptTokens tokens of the prompt
   * @param localCachedTokens of them found in the prefix cache
   * @param externalCachedTokens of them loaded from an external cache
   * @param cacheCreationTokens of them newly put into the prefix cache
   */
  default void prefillStats(
      Sequence sequence,
      int promptTokens,
      int localCachedTokens,
      int externalCachedTokens,
      int cacheCreationTokens) {}

  /**
   * Drafts of a sequence were checked; just before {@link #tokens}.
   *
   * @param sequence the sequence
   * @param drafts drafts that the step computed
   * @param accepted of them right
   */
  default void draftsVerified(Sequence sequence, int drafts, int accepted) {}

  /** A token of a sequence comes from logits with a NaN among them; just before {@link #tokens}. */
  default void nanInLogits(Sequence sequence) {}

  /** The sequence grew by so many tokens in this step, those after a stop not counted. */
  default void tokens(Sequence sequence, int count) {}

  /** The sequence ended: inside the output of a step, or by an abort at any time. */
  default void finished(Sequence sequence, FinishReason reason, long nanos) {}

  /** The output of a step is complete. */
  default void outputsEnd() {}
}
