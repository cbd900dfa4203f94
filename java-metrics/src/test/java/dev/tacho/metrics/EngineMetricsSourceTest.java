package dev.tacho.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.EngineLifecycle;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.perf.WorkEstimate;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class EngineMetricsSourceTest {
  private static final ModelShape MODEL = ModelShape.dense(2, 8, 2, 1, 4, 16, 32, 4, 4, 4);

  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  @Test
  void withLogStatsOffNothingIsRecordedAndOnlyTheStateIsShown() {
    EngineMetricsOptions options = EngineMetricsOptions.builder("m", 100).logStats(false).registry(registry).build();
    try (EngineMetricsSource source = EngineMetricsSource.open(options)) {
      assertThat(source.engineWriter().enabled()).isFalse();
      assertThat(source.outputWriter().enabled()).isFalse();
      source.lifecycle(EngineLifecycle.RUNNING);
      assertThat(source.exposition(ExpositionFormat.TEXT_0_0_4)).doesNotContain("vllm:")
          .contains("tacho:engine_state{engine=\"0\",model_name=\"m\",state=\"running\"} 1.0\n")
          .contains("tacho:engine_state{engine=\"0\",model_name=\"m\",state=\"starting\"} 0.0\n");
    }
  }

  /** Nobody drains until far more was written than the rings may hold. */
  @Test
  void afterALossCountersFollowTheEnginesTotals() {
    EngineMetricsOptions options = EngineMetricsOptions.builder("m", 100).registry(registry).build();
    try (EngineMetricsSource source = EngineMetricsSource.open(options)) {
      EventWriter events = source.engineWriter();
      long written = 0;
      int step = 0;
      source.counters().add(EngineCounter.ACCEPTED, 1);
      events.queued(0, 0, 0, 0, 1, 0, 0, 1, 0);
      while (written < 10_000_000) {
        events.step(++step, step, step, 1, new StepShape());
        for (int i = 0; i < 1000; i++) {
          events.tokens(0, 0, 1);
        }
        written += 1000;
        source.counters().add(EngineCounter.GENERATION_TOKENS, 1000);
        events.commit();
      }
      String lost = source.exposition(ExpositionFormat.TEXT_0_0_4);
      assertThat(lost).contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 1e+07\n")
          .doesNotContain("tacho:events_lost_total{engine=\"0\",model_name=\"m\"} 0.0\n");
      events.step(++step, step, step, 1, new StepShape());
      events.tokens(0, 0, 5);
      events.commit();
      source.outputWriter().pickUp(step, step);
      source.outputWriter().commit();
      source.counters().add(EngineCounter.GENERATION_TOKENS, 5);
      assertThat(source.exposition(ExpositionFormat.TEXT_0_0_4))
          .contains("vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 1.0000005e+07\n");
    }
  }

  @Test
  void aPlugInSwitchesRecordingOnWithoutTheDefaultLoggers() {
    List<Integer> running = new ArrayList<>();
    EngineMetricsOptions options = EngineMetricsOptions.builder("m", 100).logStats(false).registry(registry)
        .statLogger((index, scheduler, iteration) -> {
          if (scheduler != null) {
            running.add(scheduler.running());
          }
        }).build();
    try (EngineMetricsSource source = EngineMetricsSource.open(options)) {
      assertThat(source.engineWriter().enabled()).isTrue();
      source.engineWriter().snapshot(9, 0, 0, 1, 1, 0, 0, 0);
      source.engineWriter().commit();
      assertThat(source.exposition(ExpositionFormat.TEXT_0_0_4)).doesNotContain("vllm:");
      assertThat(running).containsExactly(9);
    }
  }

  @Test
  void twoEnginesOfAModelNeedTwoIndexes() {
    try (FakeEngine first = new FakeEngine(3, registry, o -> { })) {
      assertThat(first.source().options().engineIndex()).isEqualTo(3);
      assertThatThrownBy(() -> new FakeEngine(3, registry, o -> { })).isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("engine 3 of model m").hasMessageContaining("engineIndex");
    }
    FakeEngine again = new FakeEngine(3, registry, o -> { });
    assertThat(again.value("vllm:num_requests_running")).isZero();
    again.close();
    again.close();
    assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4)).isEmpty();
  }

  @Test
  void refusalsOfAModelsEnginesAreOneNumber() {
    try (FakeEngine first = new FakeEngine(0, registry, o -> { });
        FakeEngine second = new FakeEngine(1, registry, o -> { })) {
      first.source().counters().add(EngineCounter.REJECTED_REQUESTS, 2);
      second.source().counters().add(EngineCounter.REJECTED_REQUESTS, 3);
      second.source().counters().add(EngineCounter.REJECTED_TOKENS, 1);
      assertThat(first.source().exposition(ExpositionFormat.TEXT_0_0_4).lines()
          .filter(l -> l.startsWith("vllm:admission_rejections_total{"))).containsExactly(
              "vllm:admission_rejections_total{model_name=\"m\",reason=\"max_num_queued_reqs\"} 5.0",
              "vllm:admission_rejections_total{model_name=\"m\",reason=\"max_num_queued_tokens\"} 1.0");
      assertThat(first.source().snapshot().named("vllm:admission_rejections")).hasSize(2)
          .extracting(v -> ((MetricsSnapshot.Counter) v).value()).containsExactly(5.0, 1.0);
      assertThat(registry.collectorRegistry().getSampleValue("vllm:admission_rejections_total",
          new String[] {"model_name", "reason"}, new String[] {"m", "max_num_queued_reqs"})).isEqualTo(5.0);
    }
  }

  @Test
  void childrenOfALabelStandByValueThenByEngine() {
    try (FakeEngine first = new FakeEngine(0, registry, o -> { });
        FakeEngine second = new FakeEngine(1, registry, o -> { })) {
      first.snapshot(0, 1, 2, 1, 1);
      second.snapshot(0, 3, 4, 1, 1);
      assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4).lines()
          .filter(l -> l.startsWith("vllm:num_requests_waiting_by_reason{"))
          .map(l -> l.substring(l.indexOf('{')))).containsExactly(
              "{engine=\"0\",model_name=\"m\",reason=\"capacity\"} 1.0",
              "{engine=\"1\",model_name=\"m\",reason=\"capacity\"} 3.0",
              "{engine=\"0\",model_name=\"m\",reason=\"deferred\"} 2.0",
              "{engine=\"1\",model_name=\"m\",reason=\"deferred\"} 4.0");
    }
  }

  @Test
  void estimatedWorkMovesWithTheOptionAlone() {
    StepShape shape = new StepShape();
    shape.add(true, 10, 0);
    shape.add(false, 1, 30);
    WorkEstimate expected = new WorkEstimate();
    new PerfEstimator(MODEL).estimate(shape, expected);
    try (FakeEngine on = new FakeEngine(0, registry, o -> o.mfuMetrics(true).modelShape(MODEL));
        FakeEngine off = new FakeEngine(1, registry, o -> o.modelShape(MODEL))) {
      for (FakeEngine engine : List.of(on, off)) {
        engine.events().step(1, 10, 5, 0, shape);
        engine.snapshot(1, 0, 0, 1, 1);
        engine.snapshot(1, 0, 0, 1, 1);
      }
      assertThat(on.value("vllm:estimated_flops_per_gpu_total", "engine=\"0\"")).isEqualTo((double) expected.flops());
      assertThat(on.value("vllm:estimated_read_bytes_per_gpu_total", "engine=\"0\""))
          .isEqualTo((double) expected.readBytes());
      assertThat(on.value("vllm:estimated_write_bytes_per_gpu_total", "engine=\"0\""))
          .isEqualTo((double) expected.writeBytes());
      assertThat(on.value("vllm:estimated_flops_per_gpu_total", "engine=\"1\"")).isZero();
    }
  }

  @Test
  void lossesAreShown() {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> { })) {
      for (int i = 0; i < 500_000; i++) {
        engine.events().tokens(0, 0, 1);
      }
      engine.events().commit();
      assertThat(engine.value("tacho:ring_full_total")).isPositive();
      assertThat(engine.value("tacho:events_lost_total")).isPositive();
      engine.snapshot(4, 0, 0, 1, 1);
      assertThat(engine.value("vllm:num_requests_running")).as("and recording goes on").isEqualTo(4);
    }
  }

  @Test
  @Timeout(60)
  void enginesComeAndGoWhileOthersRecordAndScrape() throws InterruptedException {
    MetricsRegistry busy = MetricsRegistry.create();
    List<Thread> threads = new ArrayList<>();
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    for (int t = 0; t < 3; t++) {
      int index = t;
      threads.add(Thread.ofPlatform().start(() -> {
        try {
          for (int round = 0; round < 30; round++) {
            try (FakeEngine engine = new FakeEngine(index, busy, o -> { })) {
              engine.snapshot(round, 0, 0, 1, 1);
              assertThat(engine.value("vllm:num_requests_running", "engine=\"" + index + "\"")).isEqualTo(round);
            }
          }
        } catch (Throwable e) {
          failures.add(e);
        }
      }));
    }
    for (Thread thread : threads) {
      Await.ended(thread);
    }
    assertThat(failures).isEmpty();
    assertThat(busy.exposition(ExpositionFormat.TEXT_0_0_4)).isEmpty();
  }

  @Test
  void optionsAreChecked() {
    assertThatThrownBy(() -> EngineMetricsOptions.builder("m", 0)).hasMessageContaining("maxModelLen 0");
    assertThatThrownBy(() -> EngineMetricsOptions.builder("m", 1).engineIndex(-1)).hasMessageContaining("-1");
    assertThatThrownBy(() -> EngineMetricsOptions.builder("m", 1).mfuMetrics(true).build())
        .hasMessageContaining("modelShape");
    assertThatThrownBy(() -> EngineMetricsOptions.builder("m", 1).cacheConfig(Map.of("block-size", "16")))
        .hasMessageContaining("block-size");
    for (Duration absurd : List.of(Duration.ofSeconds(Long.MAX_VALUE), Duration.ofSeconds(-1))) {
      assertThatThrownBy(() -> EngineMetricsOptions.builder("m", 1).logInterval(absurd))
          .isInstanceOf(IllegalArgumentException.class).hasMessageContaining("logInterval " + absurd)
          .hasMessageContaining(EngineMetricsOptions.MAX_LOG_INTERVAL.toString());
    }
    assertThat(EngineMetricsOptions.builder("m", 1).build().logInterval()).isEqualTo(Duration.ofSeconds(10));
  }
}
