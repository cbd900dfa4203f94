package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.FakeEngine;
import dev.tacho.metrics.collector.MetricsCollector;
import io.prometheus.client.CollectorRegistry;
import io.prometheus.client.Counter;
import io.prometheus.client.Gauge;
import io.prometheus.client.Histogram;
import io.prometheus.client.Summary;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

class MetricsRegistryTest {
  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  @Test
  void guestsGoOutInTheSameForm() {
    CollectorRegistry guests = registry.collectorRegistry();
    Counter.build("jobs", "Jobs\\done.").labelNames("z", "a").register(guests).labels("1\n2", "\"q\\").inc(2_000_000);
    Histogram.build("wait", "Wait.").buckets(0.5, 10).register(guests).observe(3);
    Summary.build("size", "Size.").quantile(0.5, 0.01).register(guests).observe(7);
    Gauge.build("depth", "Depth.").register(guests).set(-1.5);
    String text = registry.exposition(ExpositionFormat.TEXT_0_0_4);
    assertThat(text).contains("""
        # HELP jobs_total Jobs\\\\done.
        # TYPE jobs_total counter
        jobs_total{a="\\"q\\\\",z="1\\n2"} 2e+06
        """).contains("""
        # HELP wait Wait.
        # TYPE wait histogram
        wait_bucket{le="0.5"} 0.0
        wait_bucket{le="10.0"} 1.0
        wait_bucket{le="+Inf"} 1.0
        wait_count 1.0
        wait_sum 3.0
        """).contains("""
        # TYPE size summary
        size{quantile="0.5"} 7.0
        size_count 1.0
        size_sum 7.0
        """).contains("depth -1.5\n").doesNotContain("_created");
  }

  @Test
  void openMetricsKeepsColonsAndEndsWithItsMark() throws IOException {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> { })) {
      engine.snapshot(2, 0, 0, 1, 1);
      String text = registry.exposition(ExpositionFormat.OPENMETRICS_1_0_0);
      assertThat(text).contains("# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{")
          .contains("# TYPE vllm:iteration_tokens_total histogram\n")
          .contains("vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 2.0\n")
          .endsWith("\n# EOF\n");
      String bytes = new String(registry.expositionBytes(ExpositionFormat.OPENMETRICS_1_0_0), StandardCharsets.UTF_8);
      ByteArrayOutputStream stream = new ByteArrayOutputStream();
      registry.writeTo(ExpositionFormat.OPENMETRICS_1_0_0, stream);
      for (String other : new String[] {bytes, stream.toString(StandardCharsets.UTF_8)}) {
        assertThat(other.lines().filter(MetricsRegistryTest::isSettled)).containsExactlyElementsOf(
            text.lines().filter(MetricsRegistryTest::isSettled).toList());
      }
    }
    assertThat(ExpositionFormat.OPENMETRICS_1_0_0.contentType()).startsWith("application/openmetrics-text");
  }

  /** Draining takes time, and says so. */
  private static boolean isSettled(String line) {
    return !line.startsWith("tacho:metrics_drain_seconds");
  }

  @Test
  void aStreamThatFailsLeavesTheRegistryAsItWas() {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> { })) {
      assertThatThrownBy(() -> registry.writeTo(ExpositionFormat.TEXT_0_0_4, new OutputStream() {
        @Override
        public void write(int b) throws IOException {
          throw new IOException("gone");
        }
      })).isInstanceOf(IOException.class).hasMessage("gone");
      assertThat(engine.source().exposition(ExpositionFormat.TEXT_0_0_4)).contains("vllm:num_requests_running{");
    }
  }

  @Test
  void anEngineFamilyStandsOnceThoughTheRegistryShowsItToo() {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> { })) {
      String text = registry.exposition(ExpositionFormat.TEXT_0_0_4);
      assertThat(text.lines().filter(l -> l.startsWith("# TYPE vllm:num_requests_running "))).hasSize(1);
      engine.snapshot(2, 0, 0, 1, 1);
      assertThat(registry.collectorRegistry().getSampleValue("vllm:num_requests_running",
          new String[] {"model_name", "engine"}, new String[] {"m", "0"})).isEqualTo(2.0);
    }
  }

  @Test
  void labelValuesAreEscaped() {
    registry.join(
        EngineFamilies.builder("a\"b\\c\nü", 0, 10).with(MetricFamily.Gate.LOG_STATS, true).build());
    assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4))
        .contains("vllm:num_requests_running{engine=\"0\",model_name=\"a\\\"b\\\\c\\nü\"} 0.0\n");
  }

  @Test
  void theRegistryOfAnApplicationHasOneOfUs() {
    CollectorRegistry application = new CollectorRegistry(true);
    assertThat(MetricsRegistry.of(application)).isSameAs(MetricsRegistry.of(application))
        .isNotSameAs(MetricsRegistry.of(new CollectorRegistry(true)));
    CollectorRegistry taken = new CollectorRegistry(true);
    Gauge.build("vllm:num_requests_running", "Somebody else's.").register(taken);
    assertThatThrownBy(() -> MetricsRegistry.of(taken)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void theJvmsFamiliesAreGuests() {
    JvmMetrics.registerIn(registry);
    JvmMetrics.registerIn(registry);
    assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4))
        .contains("# TYPE jvm_threads_current gauge").contains("process_cpu_seconds_total ");
  }

  @Test
  void theCatalogIsSound() {
    List<MetricFamily> families = MetricCatalog.families();
    assertThat(families).extracting(MetricFamily::name).doesNotHaveDuplicates();
    assertThat(families).allSatisfy(f -> {
      assertThat(f.help()).endsWith(".");
      assertThat(f.name()).matches("(vllm|tacho):[a-z0-9_]+");
      assertThat(f.exposedName().endsWith("_total"))
          .isEqualTo(f.type() == MetricFamily.Type.COUNTER || f.name().equals("vllm:iteration_tokens_total"));
    });
    assertThat(Collections.frequency(families.stream().map(MetricFamily::type).toList(), MetricFamily.Type.HISTOGRAM))
        .isEqualTo(34);
  }
}
