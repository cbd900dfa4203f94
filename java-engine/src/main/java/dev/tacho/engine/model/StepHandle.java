package dev.tacho.engine.model;

import dev.tacho.engine.scheduler.StepResult;

/**
 * A launched step: give it to {@link ModelRunner#await} once. A runner has two, which alternate, so that a step can be
 * prepared while the result of the one before is still read. Engine thread only.
 */
public final class StepHandle {
  private final StepInputs inputs;
  private final StepResult result = new StepResult();

  StepHandle(StepInputs inputs) {
    this.inputs = inputs;
  }

  /** What the step reads and where its sampled tokens arrive. */
  StepInputs inputs() {
    return inputs;
  }

  /** Filled when the step is awaited. */
  StepResult result() {
    return result;
  }
}
