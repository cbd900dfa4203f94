package dev.tacho.engine.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.tacho.engine.kv.KvBlockPool;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A step in which every sequence gets one token allocates nothing, block hashes included. */
class SchedulerAllocationTest {
  private final StepResult result = new StepResult();
  private final StepOutputs outputs = new StepOutputs();

  private void step(Scheduler scheduler, long nanos) {
    StepPlan plan = scheduler.schedule(nanos);
    result.reset();
    for (int i = 0; i < plan.numSequences(); i++) {
      result.nextSequence();
      if (plan.samples(i)) {
        result.addToken(17 + i, null);
      }
    }
    scheduler.update(plan, result, nanos, outputs);
  }

  @ParameterizedTest(name = "prefix caching {0}")
  @ValueSource(booleans = {false, true})
  void decodeStepsAllocateNothing(boolean prefixCaching) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int sequences = 64;
    SchedulerConfig config = SchedulerConfig.builder().maxNumSeqs(sequences).maxModelLen(20_000).build();
    Scheduler scheduler = new Scheduler(config, new KvBlockPool(100_000, 16, prefixCaching), SchedulerListener.NONE);
    for (int i = 0; i < sequences; i++) {
      scheduler.add(SchedulerWorld.sequence("r" + i, 20, 15_000).build(), 0);
    }
    for (int i = 0; i < 8; i++) {
      scheduler.add(SchedulerWorld.sequence("w" + i, 20, 15_000).build(), 0);
    }
    // 20 + 8,500 tokens: past the last doubling of the arrays before the measured steps.
    for (int i = 0; i < 8_500; i++) {
      step(scheduler, i);
    }
    long least = Long.MAX_VALUE;
    // How soon a round is clean, the compilers decide; the sequences have room for 6,500 steps more.
    for (int round = 0; round < 60 && least > 0; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 100; i++) {
        step(scheduler, i);
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    assertThat(scheduler.numRunning()).isEqualTo(sequences);
    assertThat(scheduler.numWaiting()).isEqualTo(8);
    assertThat(least).isZero();
  }
}
