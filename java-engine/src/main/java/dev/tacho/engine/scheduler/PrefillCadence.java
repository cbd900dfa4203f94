package dev.tacho.engine.scheduler;

/**
 * Keeps prompts out of most steps, so that decoding sequences are slowed down in one step of {@code interval} only. The
 * hold is lifted when nothing decodes, and when the last step without it could not drain the queue.
 */
final class PrefillCadence {
  private final int interval;
  private long executedSteps;
  private long lastPrefillStep;
  private boolean capacityBound;
  private boolean hold;

  /**
   * @param interval steps from one with prompts to the next; 1 for no hold
   */
  PrefillCadence(int interval) {
    this.interval = interval;
    this.lastPrefillStep = -interval;
  }

  /** Decides at the start of a step. */
  void begin(RunningSequences running) {
    hold =
        interval > 1
            && executedSteps + 1 - lastPrefillStep < interval
            && !capacityBound
            && anyDecodes(running);
  }

  private static boolean anyDecodes(RunningSequences running) {
    for (int i = 0; i < running.end(); i++) {
      SequenceProgress progress = running.at(i);
      if (progress != null && !progress.midPrompt) {
        return true;
      }
    }
    return false;
  }

  /** True if this step is to carry no prompt. */
  boolean holds() {
    return hold;
  }

  /** The waiting queue has been worked on; {@code left} of it could have been admitted with more room. */
  void admissionsDone(int left) {
    if (!hold) {
      capacityBound = left > 0;
    }
  }

  /** The step is planned. */
  void end(boolean executes, boolean carriesPrefill) {
    if (executes) {
      executedSteps++;
      if (carriesPrefill) {
        lastPrefillStep = executedSteps;
      }
    }
  }
}
