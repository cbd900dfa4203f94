package dev.tacho.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.perf.WorkEstimate;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Cases of docs about what is recorded and what it costs, numbered as there. */
class RecordingUserCasesTest {
  private static final ModelShape MODEL = ModelShape.dense(8, 1024, 16, 4, 64, 4096, 32000, 2, 2, 2);

  private static WorkEstimate estimate(ModelShape model, StepShape shape) {
    WorkEstimate work = new WorkEstimate();
    new PerfEstimator(model, true).estimate(shape, work);
    return work;
  }

  @Test
  void userCase13StagesAddUpAndLogitsCountSampledRows() {
    StepShape shape = new StepShape();
    shape.add(true, 100, 0);
    shape.add(false, 1, 50);
    WorkEstimate whole = estimate(MODEL, shape);
    WorkEstimate stage = estimate(MODEL.withParallelism(1, 4, 1), shape);
    long unembed = 2L * 2 * 1024 * 32000;
    assertThat(whole.parts().flops()).as("two sampled rows of 101 tokens").containsEntry("unembed.unembed", unembed)
        .allSatisfy((part, flops) -> assertThat(part).doesNotContain("embedding"));
    assertThat(4 * (stage.flops() - unembed)).isEqualTo(whole.flops() - unembed);
  }

  @Test
  @Timeout(30)
  void userCase33RecordingAllocatesNothingAndWaitsForNobody() throws InterruptedException {
    MetricsCollector collector = MetricsCollector.onDemand();
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    CountDownLatch held = new CountDownLatch(1);
    CountDownLatch recorded = new CountDownLatch(1);
    try (FakeEngine engine = new FakeEngine(0, MetricsRegistry.create(collector), o -> { })) {
      StepShape shape = new StepShape();
      record(engine.events(), shape, 0);
      Thread holder = Thread.ofPlatform().start(() -> collector.drainThen(() -> {
        held.countDown();
        Await.open("the engine has recorded", recorded);
      }));
      Await.open("the lock is held", held);
      long before = threads.getCurrentThreadAllocatedBytes();
      record(engine.events(), shape, 1000);
      long allocated = threads.getCurrentThreadAllocatedBytes() - before;
      recorded.countDown();
      Await.ended(holder);
      assertThat(allocated).as("bytes, while somebody holds the collector's lock").isZero();
    }
  }

  private static void record(EventWriter events, StepShape shape, long from) {
    for (long step = from + 1; step <= from + 1000; step++) {
      events.step(step, step, step, 8, shape);
      for (int slot = 0; slot < 8; slot++) {
        events.tokens(slot, 0, 1);
      }
      events.commit();
    }
  }
}
