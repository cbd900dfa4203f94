package dev.tacho.engine.scheduler;

import dev.tacho.engine.kv.PrefixHashAlgorithm;

/**
 * Limits and rules of the scheduler, under vLLM's names. Immutable; checked when it is made.
 *
 * @param maxNumBatchedTokens tokens of a step's model input at most
 * @param maxNumScheduledTokens tokens scheduled in a step at most; default {@code maxNumBatchedTokens}
 * @param maxNumSeqs sequences that run at the same time at most; sizes the runner
 * @param maxNumActiveSeqs sequences that are admitted at most, default {@code maxNumSeqs}
 * @param maxModelLen tokens of prompt and output of a sequence at most
 * @param policy order of admission, choice of the victim
 * @param enableChunkedPrefill a prompt may be computed in several steps
 * @param longPrefillTokenThreshold tokens of one sequence in a step at most while there are several; 0: no such limit
 * @param adaptiveLongPrefillThreshold with few sequences the threshold grows to an even share of the step
 * @param watermark share of all KV blocks that admissions leave free while something runs, in [0, 1)
 * @param reserveFullSequence a sequence is admitted only if all its present tokens fit into the free blocks, not only
 *     the first chunk
 * @param guardBlocks blocks of a sequence that is aborted while its step computes stay out of use until that step has
 *     ended, and blocks that a victim would have filled in the very step that it is taken out of leave the prefix
 *     cache. Without it both are as in the reference, for replaying its recordings: a sequence may then find blocks
 *     that were never computed
 * @param asyncScheduling a step is planned before the output of the one before is known; it stands for that output with
 *     placeholders
 * @param numSpeculativeTokens drafts that a step checks for a sequence at most; 0: no speculation
 * @param maxLoras different LoRA adapters in use at the same time at most; 0: no limit
 * @param prefillScheduleInterval prompts are computed in one of so many steps while others decode; 1: in any step
 * @param prefixHashAlgorithm how full blocks are hashed for the prefix cache
 */
public record SchedulerConfig(
    int maxNumBatchedTokens,
    int maxNumScheduledTokens,
    int maxNumSeqs,
    int maxNumActiveSeqs,
    int maxModelLen,
    SchedulingPolicy policy,
    boolean enableChunkedPrefill,
    int longPrefillTokenThreshold,
    boolean adaptiveLongPrefillThreshold,
    double watermark,
    boolean reserveFullSequence,
    boolean guardBlocks,
    boolean asyncScheduling,
    int numSpeculativeTokens,
    int maxLoras,
    int prefillScheduleInterval,
    PrefixHashAlgorithm prefixHashAlgorithm) {
  /** Checks every value, and those that limit each other. */
  public SchedulerConfig {
    atLeast("max_num_batched_tokens", maxNumBatchedTokens, 1);
    atLeast("max_num_seqs", maxNumSeqs, 1);
    atLeast("max_num_active_seqs", maxNumActiveSeqs, 1);
    atLeast("max_num_scheduled_tokens", maxNumScheduledTokens, 1);
    atLeast("max_model_len", maxModelLen, 2);
    atLeast("long_prefill_token_threshold", longPrefillTokenThreshold, 0);
    atLeast("num_speculative_tokens", numSpeculativeTokens, 0);
    atLeast("max_loras", maxLoras, 0);
    atLeast("prefill_schedule_interval", prefillScheduleInterval, 1);
    atMost("max_num_seqs", maxNumSeqs, "max_num_batched_tokens", maxNumBatchedTokens);
    atMost("max_num_scheduled_tokens", maxNumScheduledTokens, "max_num_batched_tokens", maxNumBatchedTokens);
    atMost("max_num_active_seqs", maxNumActiveSeqs, "max_num_seqs", maxNumSeqs);
    atMost("long_prefill_token_threshold", longPrefillTokenThreshold, "max_model_len", maxModelLen);
    if (!enableChunkedPrefill) {
      atMost("without chunked prefill max_model_len", maxModelLen, "max_num_batched_tokens", maxNumBatchedTokens);
    }
    if (!(watermark >= 0 && watermark < 1)) {
      throw new IllegalArgumentException("watermark must be in [0, 1), is " + watermark);
    }
  }

  private static void atLeast(String name, int value, int least) {
    if (value < least) {
      throw new IllegalArgumentException(name + " must be at least " + least + ", is " + value);
    }
  }

  private static void atMost(String name, int value, String limitName, int limit) {
    if (value > limit) {
      throw new IllegalArgumentException(name + " must be at most " + limitName + " " + limit + ", is " + value);
    }
  }

  /** A builder with the defaults: 2048 tokens and 128 sequences, FCFS, chunked prefill. */
  public static Builder builder() {
    return new Builder();
  }

  /** Collects values; {@link #build()} checks them. */
  public static final class Builder {
    private static final int AS_THE_OTHER = -1;

    private int maxNumBatchedTokens = 2048;
    private int maxNumScheduledTokens = AS_THE_OTHER;
    private int maxNumSeqs = 128;
    private int maxNumActiveSeqs = AS_THE_OTHER;
    private int maxModelLen = 2048;
    private SchedulingPolicy policy = SchedulingPolicy.FCFS;
    private boolean enableChunkedPrefill = true;
    private int longPrefillTokenThreshold;
    private boolean adaptiveLongPrefillThreshold;
    private double watermark;
    private boolean reserveFullSequence = true;
    private boolean guardBlocks = true;
    private boolean asyncScheduling;
    private int numSpeculativeTokens;
    private int maxLoras;
    private int prefillScheduleInterval = 1;
    private PrefixHashAlgorithm prefixHashAlgorithm = PrefixHashAlgorithm.SHA256;

    private Builder() {}

    /** See {@link SchedulerConfig#maxNumBatchedTokens()}. */
    public Builder maxNumBatchedTokens(int value) {
      maxNumBatchedTokens = value;
      return this;
    }

    /** See {@link SchedulerConfig#maxNumScheduledTokens()}. */
    public Builder maxNumScheduledTokens(int value) {
      maxNumScheduledTokens = value;
      return this;
    }

    /** See {@link SchedulerConfig#maxNumSeqs()}. */
    public Builder maxNumSeqs(int value) {
      maxNumSeqs = value;
      return this;
    }

    /** See {@link SchedulerConfig#maxNumActiveSeqs()}. */
    public Builder maxNumActiveSeqs(int value) {
      maxNumActiveSeqs = value;
      return this;
    }

    /** See {@link SchedulerConfig#maxModelLen()}. */
    public Builder maxModelLen(int value) {
      maxModelLen = value;
      return this;
    }

    /** See {@link SchedulerConfig#policy()}. */
    public Builder policy(SchedulingPolicy value) {
      policy = value;
      return this;
    }

    /** See {@link SchedulerConfig#enableChunkedPrefill()}. */
    public Builder enableChunkedPrefill(boolean value) {
      enableChunkedPrefill = value;
      return this;
    }

    /** See {@link SchedulerConfig#longPrefillTokenThreshold()}. */
    public Builder longPrefillTokenThreshold(int value) {
      longPrefillTokenThreshold = value;
      return this;
    }

    /** See {@link SchedulerConfig#adaptiveLongPrefillThreshold()}. */
    public Builder adaptiveLongPrefillThreshold(boolean value) {
      adaptiveLongPrefillThreshold = value;
      return this;
    }

    /** See {@link SchedulerConfig#watermark()}. */
    public Builder watermark(double value) {
      watermark = value;
      return this;
    }

    /** See {@link SchedulerConfig#reserveFullSequence()}. */
    public Builder reserveFullSequence(boolean value) {
      reserveFullSequence = value;
      return this;
    }

    /** See {@link SchedulerConfig#guardBlocks()}. */
    public Builder guardBlocks(boolean value) {
      guardBlocks = value;
      return this;
    }

    /** See {@link SchedulerConfig#asyncScheduling()}. */
    public Builder asyncScheduling(boolean value) {
      asyncScheduling = value;
      return this;
    }

    /** See {@link SchedulerConfig#numSpeculativeTokens()}. */
    public Builder numSpeculativeTokens(int value) {
      numSpeculativeTokens = value;
      return this;
    }

    /** See {@link SchedulerConfig#maxLoras()}. */
    public Builder maxLoras(int value) {
      maxLoras = value;
      return this;
    }

    /** See {@link SchedulerConfig#prefillScheduleInterval()}. */
    public Builder prefillScheduleInterval(int value) {
      prefillScheduleInterval = value;
      return this;
    }

    /** See {@link SchedulerConfig#prefixHashAlgorithm()}. */
    public Builder prefixHashAlgorithm(PrefixHashAlgorithm value) {
      prefixHashAlgorithm = value;
      return this;
    }

    /** The checked configuration. */
    public SchedulerConfig build() {
      return new SchedulerConfig(
          maxNumBatchedTokens,
          maxNumScheduledTokens == AS_THE_OTHER ? maxNumBatchedTokens : maxNumScheduledTokens,
          maxNumSeqs,
          maxNumActiveSeqs == AS_THE_OTHER ? maxNumSeqs : maxNumActiveSeqs,
          maxModelLen,
          policy,
          enableChunkedPrefill,
          longPrefillTokenThreshold,
          adaptiveLongPrefillThreshold,
          watermark,
          reserveFullSequence,
          guardBlocks,
          asyncScheduling,
          numSpeculativeTokens,
          maxLoras,
          prefillScheduleInterval,
          prefixHashAlgorithm);
    }
  }
}
