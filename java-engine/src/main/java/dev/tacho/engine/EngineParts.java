package dev.tacho.engine;

import dev.tacho.engine.kv.KvBlockPool;
import dev.tacho.engine.model.ModelRunner;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.metrics.perf.ModelShape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What one engine runs on, and the limits that follow from it. The runtime that gets it owns it.
 *
 * @param info what was found and set up
 * @param codec text and token ids; belongs to the {@link LoadedModel}
 * @param runner computes steps
 * @param schedulerConfig limits of the scheduler
 * @param pool the KV blocks
 * @param shape for the estimate of a step's work; null for none
 * @param slidingWindow tokens that a windowed layer sees, 0 if there are none
 * @param discardCache gives the memory of the KV cache back to the system, which then stays valid and holds nothing;
 *     runs on the engine thread while no step is in flight and no block in use
 * @param memory what is closed after the runner, in this order: KV cache, weights, the share of the processors
 */
record EngineParts(
    EngineInfo info,
    TextCodec codec,
    ModelRunner runner,
    SchedulerConfig schedulerConfig,
    KvBlockPool pool,
    @Nullable ModelShape shape,
    int slidingWindow,
    Runnable discardCache,
    List<AutoCloseable> memory)
    implements AutoCloseable {
  /** Ends the team, then frees scratch, KV cache and weights, in this order: kernels keep addresses of all three. */
  @Override
  public void close() {
    try (CloseStack stack = new CloseStack()) {
      for (AutoCloseable resource : memory.reversed()) {
        stack.push(resource);
      }
      stack.push(runner);
    }
  }
}
