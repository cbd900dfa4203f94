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
   * Starts a step, behind the one in flight if there is one. All that it needs is copied out of the plan before this
   * returns, so that the plan and its sequences may change at once; only the {@code SamplerState}s are used until the
   * step has been awaited. A token that a sequence does not have yet is the one that the step in flight samples for it.
   *
   * @throws IllegalArgumentException if the plan is larger than the runner's limits or names a token outside the
   *     vocabulary or a block outside the cache; nothing has been started then
   * @throws IllegalStateException if two steps are in flight or the runner is closed
   */
  StepHandle launch(StepPlan plan);

  /**
   * Waits for the step in flight that was launched first.
   *
   * @return its result, valid until the launch after the next one
   * @throws RuntimeException (or Error) what made the step fail in a worker; a step launched behind it computes on,
   *     from whatever is there: await it and throw its result away
   * @throws IllegalStateException if the handle is not that of the oldest step in flight
   */
  StepResult await(StepHandle handle);

  /** Work done on an operation so far. For any thread, also while a step runs or after close. */
  OperationCounters counters(Operation operation);

  /** Calls from Java into native code so far; 0 if the kernels are Java. For any thread, also after close. */
  long ffiCalls();

  /** Nanoseconds in which a step was computed; one under way counts when it ends. For any thread, also after close. */
  long busyNanos();

  /** Threads that compute the steps together. */
  int workers();

  /**
   * Nanoseconds that a worker has waited for the others inside steps. For any thread, also after close.
   *
   * @param worker its number, below {@link #workers}
   */
  long waitNanos(int worker);

  /** Waits for the steps in flight, ends the team and frees the scratch. Does nothing the second time. */
  @Override
  void close();
}
