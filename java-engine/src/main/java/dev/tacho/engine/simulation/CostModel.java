package dev.tacho.engine.simulation;

import dev.tacho.engine.scheduler.StepPlan;

/**
 * How long a step takes: a sum of what each part of it costs, in microseconds.
 *
 * @param stepMicros of a step, whatever is in it
 * @param prefillTokenMicros of a token of a prompt, or of one that is computed again after a preemption
 * @param decodeTokenMicros of a sequence that computes its last token alone
 * @param contextTokenMicros of a token that another one attends to, itself included
 */
public record CostModel(
    double stepMicros, double prefillTokenMicros, double decodeTokenMicros, double contextTokenMicros) {
  /** Checks that time does not stand still. */
  public CostModel {
    check("step", stepMicros);
    check("prefill_token", prefillTokenMicros);
    check("decode_token", decodeTokenMicros);
    check("context_token", contextTokenMicros);
    if (stepMicros == 0 && (prefillTokenMicros == 0 || decodeTokenMicros == 0)) {
      throw new IllegalArgumentException("a step must cost time: step, or both of prefill_token and decode_token");
    }
  }

  private static void check(String name, double micros) {
    if (!(micros >= 0 && micros <= 1e9)) {
      throw new IllegalArgumentException(name + " must be in [0, 1e9] microseconds, is " + micros);
    }
  }

  /**
   * Time of a step, at least a nanosecond.
   *
   * @param plan the step
   * @param decodes see {@link #decodes}
   */
  long nanos(StepPlan plan, int decodes) {
    int prefills = plan.numTokens() - decodes;
    long context = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      long tokens = plan.scheduledTokens(i);
      context += tokens * plan.startPosition(i) + tokens * (tokens + 1) / 2;
    }
    double micros =
        stepMicros + prefills * prefillTokenMicros + decodes * decodeTokenMicros + context * contextTokenMicros;
    return Math.max(1, Math.round(micros * 1000));
  }

  /** Sequences of a step that compute their last output token alone. */
  static int decodes(StepPlan plan) {
    int decodes = 0;
    for (int i = 0; i < plan.numSequences(); i++) {
      if (plan.scheduledTokens(i) == 1 && plan.startPosition(i) >= plan.sequence(i).promptLength()) {
        decodes++;
      }
    }
    return decodes;
  }
}
