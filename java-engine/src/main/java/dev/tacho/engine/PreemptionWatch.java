package dev.tacho.engine;

import dev.tacho.engine.scheduler.Scheduler;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Counts preemptions between two looks, and says in words if sequences push each other out again and again: each runs
 * for a while and none waits long, but much is computed more than once. Engine thread alone; allocates nothing but that
 * line.
 */
final class PreemptionWatch {
  // Between two looks lies a window; its number tells a record whether it has been counted in it.
  private int window = 1;
  private int preemptions;
  private int sequences;
  private int mostRunning;
  private long firstNanos;

  /** A step was planned with so many sequences. */
  void planned(int running) {
    mostRunning = Math.max(mostRunning, running);
  }

  /** A sequence was preempted. */
  void preempted(RequestRecord record, long nanos) {
    if (preemptions == 0) {
      firstNanos = nanos;
    }
    preemptions++;
    sequences += record.enterPreemptionWindow(window) ? 1 : 0;
  }

  /**
   * A line if a sequence was preempted more than once since the look before, else null; begins a new count.
   *
   * @param scheduler of the engine, between two steps
   * @param nanos now
   */
  @Nullable String look(Scheduler scheduler, long nanos) {
    String line = preemptions > sequences ? describe(scheduler, nanos) : null;
    window++;
    preemptions = 0;
    sequences = 0;
    mostRunning = 0;
    return line;
  }

  private String describe(Scheduler scheduler, long nanos) {
    return sequences
        + (sequences == 1 ? " sequence was" : " sequences were")
        + " preempted "
        + preemptions
        + " times in the last "
        + (TimeUnit.NANOSECONDS.toSeconds(nanos - firstNanos) + 1)
        + " s: "
        + (scheduler.pool().numBlocks() - 1)
        + " KV blocks are too few for the "
        + mostRunning
        + " sequences that ran at a time; a smaller --"
        + EngineOption.MAX_NUM_SEQS.optionName()
        + " or more --"
        + EngineOption.KV_CACHE_MEMORY.optionName()
        + " would help";
  }
}
