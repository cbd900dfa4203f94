package dev.tacho.integrations.micrometer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheus.PrometheusConfig;
import io.micrometer.prometheus.PrometheusMeterRegistry;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Meters of Micrometer in the simpleclient registry go out through our writer, after the engines. */
@SuppressWarnings("deprecation") // Micrometer's registry for simpleclient is deprecated for the one for client_java.
class MicrometerGuestTest {
  @Test
  void metersOfMicrometerAreGuests() {
    MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
    PrometheusMeterRegistry meters =
        new PrometheusMeterRegistry(PrometheusConfig.DEFAULT, registry.collectorRegistry(), Clock.SYSTEM);
    meters.counter("app.jobs", "kind", "a\"b").increment(3);
    Timer.builder("app.wait").serviceLevelObjectives(Duration.ofMillis(10)).register(meters)
        .record(Duration.ofMillis(5));
    meters.gauge("app.depth", 7);
    try (EngineMetricsSource engine =
        EngineMetricsSource.open(EngineMetricsOptions.builder("m", 100).registry(registry).build())) {
      String text = engine.exposition(ExpositionFormat.TEXT_0_0_4);
      assertThat(text).contains("vllm:num_requests_running{")
          .contains("# TYPE app_jobs_total counter\napp_jobs_total{kind=\"a\\\"b\"} 3.0\n")
          .contains("app_wait_seconds_bucket{le=\"0.01\"} 1.0\n").contains("app_wait_seconds_sum 0.005\n")
          .contains("app_depth 7.0\n");
      assertThat(text.indexOf("app_")).isGreaterThan(text.lastIndexOf("\nvllm:"));
      assertThat(engine.exposition(ExpositionFormat.OPENMETRICS_1_0_0))
          .contains("# TYPE app_jobs counter\napp_jobs_total{kind=\"a\\\"b\"} 3.0\n");
    }
    meters.close();
  }
}
