package dev.tacho.engine.model;

import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.scheduler.StepPlan;
import dev.tacho.engine.scheduler.StepResult;

/**
 * Runs steps: from the tokens of a plan to sampled tokens, KV cache included. {@code launch} and {@code await} are
 * called by one thread, the engine's; a launched step is computed by the runner's own team meanwhile. The KV cache and
 * the weights belong to the caller and must outlive the runner.
 */
public interface ModelRunner extends AutoCloseable {
  /**
   * Starts a step. All that it needs is copied out of the plan before this returns, so that the plan and its sequences
   * may change at once; only the {@code SamplerState}s are used until the step has been awaited.
   *
   * @throws IllegalArgumentException if the plan is larger than the runner's limits or names a token outside the
   *     vocabulary or a block outside the cache; nothing has been started then
   * @throws IllegalStateException if a step is in flight or the runner is closed
   */
  StepHandle launch(StepPlan plan);

  /**
   * Waits for a step.
   *
   * @return its result, valid until the launch after the next one
   * @throws RuntimeException (or Error) what made the step fail in a worker; the runner is ready for the next step
   * @throws IllegalStateException if the handle is not that of the step in flight
   */
  StepResult await(StepHandle handle);

  /** Work done on an operation so far. For any thread, also while a step runs or after close. */
  OperationCounters counters(Operation operation);

  /** Waits for a step in flight, ends the team and frees the scratch. Does nothing the second time. */
  @Override
  void close();
}
