package dev.tacho.integrations.clientjava;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import io.prometheus.metrics.config.EscapingScheme;
import io.prometheus.metrics.expositionformats.ExpositionFormatWriter;
import io.prometheus.metrics.expositionformats.OpenMetricsTextFormatWriter;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What client_java 1.x writes of our families, against what we write ourselves. */
class TachoMultiCollectorTest {
  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
  private final PrometheusRegistry application = new PrometheusRegistry();
  private EngineMetricsSource engine;

  @BeforeEach
  void runARequest() {
    engine = EngineMetricsSource.open(EngineMetricsOptions.builder("a \"model\"", 4096).registry(registry)
        .logInterval(Duration.ZERO).cacheConfig(Map.of("block_size", "16")).maxAdapters(2).build());
    EventWriter events = engine.engineWriter();
    events.queued(0, 0, 1_000_000, 0, 20, 16, 0, 1, 0);
    events.scheduled(0, 0, 2_000_000);
    events.step(1, 3_000_000, 3_000_000, 1, new StepShape());
    events.prefillStats(0, 0, 20, 0, 0, 0);
    events.tokens(0, 0, 3);
    events.finished(0, 0, FinishReason.STOP);
    events.snapshot(0, 0, 0, 90, 100, 1, 20, 0);
    events.commit();
    engine.outputWriter().pickUp(1, 4_000_000);
    engine.outputWriter().commit();
    TachoMultiCollector.register(registry, application);
  }

  @AfterEach
  void close() {
    engine.close();
  }

  @Test
  void everySampleIsTheSameAsInOurOwnText() throws IOException {
    Map<String, Double> ours = samples(registry.exposition(ExpositionFormat.TEXT_0_0_4));
    assertThat(ours).hasSizeGreaterThan(300);
    assertThat(samples(text(PrometheusTextFormatWriter.create(), EscapingScheme.UNDERSCORE_ESCAPING)))
        .isEqualTo(ours);
  }

  @Test
  void colonsStayInBothFormsWhateverTheEscaping() throws IOException {
    for (EscapingScheme escaping : new EscapingScheme[] {EscapingScheme.UNDERSCORE_ESCAPING,
        EscapingScheme.ALLOW_UTF8}) {
      assertThat(text(PrometheusTextFormatWriter.create(), escaping))
          .contains("# TYPE vllm:prompt_tokens_total counter\n")
          .contains("vllm:iteration_tokens_total_bucket{engine=\"0\",model_name=\"a \\\"model\\\"\",le=\"+Inf\"} 1\n")
          .contains("vllm:cache_config_info{block_size=\"16\",engine=\"0\"} 1.0\n");
      assertThat(text(OpenMetricsTextFormatWriter.create(), escaping))
          .contains("# TYPE vllm:prompt_tokens counter\n").contains("vllm:prompt_tokens_total{").endsWith("# EOF\n");
    }
  }

  @Test
  void enginesComeAndGo() throws IOException {
    engine.close();
    assertThat(text(PrometheusTextFormatWriter.create(), EscapingScheme.ALLOW_UTF8)).doesNotContain("vllm:");
  }

  private String text(ExpositionFormatWriter writer, EscapingScheme escaping) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    writer.write(out, application.scrape(), escaping);
    return out.toString(StandardCharsets.UTF_8);
  }

  /** Families whose values are times, which go on between two readings. */
  private static final Pattern TIMES = Pattern.compile("vllm:lora_requests_info|tacho:metrics_drain_seconds|"
      + "tacho:metrics_record_seconds|tacho:seconds_since_last_step|tacho:oldest_");

  /** Samples by name and sorted labels; bounds as numbers. */
  private static Map<String, Double> samples(String text) {
    return text.lines().filter(line -> !line.startsWith("#") && !line.isBlank())
        .filter(line -> !TIMES.matcher(line).lookingAt())
        .collect(Collectors.toMap(TachoMultiCollectorTest::key,
            line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1).replace("Inf", "Infinity")),
            (a, b) -> b, TreeMap::new));
  }

  private static String key(String line) {
    String series = line.substring(0, line.lastIndexOf(' '));
    int brace = series.indexOf('{');
    if (brace < 0) {
      return series;
    }
    Map<String, String> labels = new TreeMap<>();
    for (String label : series.substring(brace + 1, series.length() - 2).split("\",", -1)) {
      int equals = label.indexOf('=');
      labels.put(label.substring(0, equals), label.substring(equals + 2));
    }
    labels.computeIfPresent("le", (name, bound) -> Double.toString(Double.parseDouble(bound.replace("Inf",
        "Infinity"))));
    return series.substring(0, brace) + labels;
  }
}
