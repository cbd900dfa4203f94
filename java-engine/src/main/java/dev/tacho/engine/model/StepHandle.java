package dev.tacho.engine.model;

import dev.tacho.engine.parallel.TeamTask;
import dev.tacho.engine.scheduler.StepResult;

/**
 * A launched step: give it to {@link ModelRunner#await} once. A runner has two, which alternate, so that a step can be
 * launched while the one before computes. Engine thread only.
 */
public final class StepHandle {
  private final StepInputs inputs;
  private final TeamTask task;
  private final StepResult result = new StepResult();

  /**
   * @param inputs what the step reads and where its sampled tokens arrive
   * @param task computes the step from them
   */
  StepHandle(StepInputs inputs, TeamTask task) {
    this.inputs = inputs;
    this.task = task;
  }

  /** What the step reads and where its sampled tokens arrive. */
  StepInputs inputs() {
    return inputs;
  }

  /** What each worker runs. */
  TeamTask task() {
    return task;
  }

  /** Filled when the step is awaited. */
  StepResult result() {
    return result;
  }
}
