package dev.tacho.engine;

import dev.tacho.engine.kernel.Operation;
import dev.tacho.engine.model.ModelRunner;
import dev.tacho.engine.model.OperationCounters;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.perf.CounterSource;
import dev.tacho.metrics.perf.DeviceCounters;

/**
 * What a runner has computed, for the metrics. The packing of weights is left out: it belongs to no step.
 *
 * @param runner whose work it is; may be closed
 * @param page the engine's running totals
 */
record RunnerCounters(ModelRunner runner, CounterPage page) implements CounterSource {
  @Override
  public void read(DeviceCounters counters) {
    long flops = 0;
    long readBytes = 0;
    long writeBytes = 0;
    for (Operation operation : Operation.values()) {
      if (operation != Operation.WEIGHT_PACK) {
        OperationCounters work = runner.counters(operation);
        flops += work.flops();
        readBytes += work.readBytes();
        writeBytes += work.writeBytes();
      }
    }
    counters.work(flops, readBytes, writeBytes);
    counters.ffiCalls(runner.ffiCalls());
    for (int worker = 0; worker < runner.workers(); worker++) {
      counters.workerWait(worker, runner.waitNanos(worker));
    }
    counters.time(runner.busyNanos(), page.get(EngineCounter.BUBBLE_NANOS));
  }
}
