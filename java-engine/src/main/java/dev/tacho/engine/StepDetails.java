package dev.tacho.engine;

import dev.tacho.engine.scheduler.Sequence;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.metrics.event.EventWriter;

/**
 * Sums up what each step works on, for a line in the log: sequences without an output so far, and the others. A step is
 * planned while the one before it may still compute, so two are kept. Engine thread only.
 */
final class StepDetails {
  private static final int STEPS = 2;
  private static final int CONTEXT_REQUESTS = 0;
  private static final int CONTEXT_TOKENS = 1;
  private static final int GENERATION_REQUESTS = 2;
  private static final int GENERATION_TOKENS = 3;
  private static final int SUMS = 4;

  private final int[] sums = new int[STEPS * SUMS];
  private final long[] startNanos = new long[STEPS];
  private long lastBatchNanos = Long.MIN_VALUE;
  private long index;

  /** A step was planned. */
  void planned(StepPlan plan, long nanos) {
    int first = place(plan) * SUMS;
    for (int i = 0; i < SUMS; i++) {
      sums[first + i] = 0;
    }
    startNanos[place(plan)] = nanos;
    for (int i = 0; i < plan.numSequences(); i++) {
      Sequence sequence = plan.sequence(i);
      // Its first output may be computed at this moment, by the step before.
      boolean context = sequence.outputLength() == 0 && plan.startPosition(i) < sequence.promptLength();
      sums[first + (context ? CONTEXT_REQUESTS : GENERATION_REQUESTS)]++;
      sums[first + (context ? CONTEXT_TOKENS : GENERATION_TOKENS)] += plan.scheduledTokens(i);
    }
  }

  /** A step has ended; before the snapshot that is to show it. */
  void ended(StepPlan plan, long batchNanos, EventWriter events) {
    int first = place(plan) * SUMS;
    long begin = Math.max(startNanos[place(plan)], lastBatchNanos);
    events.details(
        ++index,
        sums[first + CONTEXT_REQUESTS],
        sums[first + CONTEXT_TOKENS],
        sums[first + GENERATION_REQUESTS],
        sums[first + GENERATION_TOKENS],
        batchNanos - begin);
    lastBatchNanos = batchNanos;
  }

  private static int place(StepPlan plan) {
    return (int) (plan.step() % STEPS);
  }
}
