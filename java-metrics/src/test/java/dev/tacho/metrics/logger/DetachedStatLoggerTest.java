package dev.tacho.metrics.logger;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.Await;
import dev.tacho.metrics.FakeEngine;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class DetachedStatLoggerTest {
  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  @Test
  void aPlugInThatBlocksLagsAndDropsAndHoldsUpNobody() {
    CountDownLatch release = new CountDownLatch(1);
    CountDownLatch closed = new CountDownLatch(1);
    StatLogger blocking = new StatLogger() {
      @Override
      public void record(int index, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
        try {
          release.await();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }

      @Override
      public void close() {
        closed.countDown();
      }
    };
    try (FakeEngine engine = new FakeEngine(0, registry, o -> o.plugIn(blocking))) {
      for (int i = 0; i < DetachedStatLogger.CAPACITY + 10; i++) {
        engine.snapshot(i, 0, 0, 1, 1);
      }
      assertThat(engine.value("vllm:num_requests_running")).isEqualTo(DetachedStatLogger.CAPACITY + 9);
      assertThat(engine.value("tacho:stat_logger_lag"))
          .isBetween(DetachedStatLogger.CAPACITY - 1.0, (double) DetachedStatLogger.CAPACITY);
      assertThat(engine.value("tacho:stat_logger_dropped_total")).isBetween(9.0, 10.0);
      release.countDown();
    }
    Await.open("the plug-in is closed", closed);
  }

  @Test
  void aPlugInSeesCopiesInOrderAndIsClosedLast() {
    List<Integer> running = new CopyOnWriteArrayList<>();
    CountDownLatch closed = new CountDownLatch(1);
    StatLogger noting = new StatLogger() {
      @Override
      public void record(int index, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
        if (scheduler != null) {
          running.add(scheduler.running());
        }
      }

      @Override
      public void close() {
        closed.countDown();
      }
    };
    try (FakeEngine engine = new FakeEngine(0, registry, o -> o.plugIn(noting))) {
      engine.snapshot(1, 0, 0, 1, 1);
      engine.snapshot(2, 0, 0, 1, 1);
      engine.snapshot(3, 0, 0, 1, 1);
    }
    Await.open("the plug-in is closed", closed);
    assertThat(running).containsExactly(1, 2, 3);
  }

  @Test
  void aPlugInThatThrowsIsCalledNoMore() {
    AtomicInteger calls = new AtomicInteger();
    CountDownLatch closed = new CountDownLatch(1);
    StatLogger failing = new StatLogger() {
      @Override
      public void record(int index, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
        calls.incrementAndGet();
        throw new IllegalStateException("plug-in");
      }

      @Override
      public void close() {
        closed.countDown();
      }
    };
    try (FakeEngine engine = new FakeEngine(0, registry, o -> o.plugIn(failing))) {
      engine.snapshot(1, 0, 0, 1, 1);
      engine.snapshot(2, 0, 0, 1, 1);
      assertThat(engine.value("vllm:num_requests_running")).isEqualTo(2);
    }
    Await.open("the plug-in is closed", closed);
    assertThat(calls).hasValue(1);
  }
}
