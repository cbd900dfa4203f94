package dev.tacho.engine.model;

import dev.tacho.engine.kernel.AttentionShape;
import java.lang.foreign.Arena;

/** Step handles for runners of tests that compute nothing. */
public final class ScriptedStep {
  private ScriptedStep() {}

  /** A handle of no step. */
  public static StepHandle handle() {
    AttentionShape shape = new AttentionShape(1, 1, 2, 1, 0, 0, null);
    RunnerLimits limits = new RunnerLimits(1, 1, 1, 0);
    return new StepHandle(new StepInputs(Arena.ofAuto(), limits, 1, 2, 1, shape), member -> {});
  }
}
