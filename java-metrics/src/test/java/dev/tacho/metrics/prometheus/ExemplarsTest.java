package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.FakeEngine;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.RequestId;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Which request an exemplar names, and how it is written. */
class ExemplarsTest {
  /** A bucket's line with an exemplar, as the grammar of OpenMetrics 1.0.0 has it. */
  private static final Pattern LINE = Pattern.compile("[a-z_:0-9]+_bucket\\{[^}]*le=\"[^\"]+\"[^}]*\\} [0-9.e+]+"
      + " # \\{request_id=\"(?:[^\"\\\\\n]|\\\\[\\\\\"n])*\"\\} [0-9.e+-]+ [0-9]+\\.[0-9]{3}");

  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  private List<String> exemplars(String family) {
    return registry.exposition(ExpositionFormat.OPENMETRICS_1_0_0).lines()
        .filter(line -> line.startsWith(family + "_bucket{") && line.contains(" # ")).toList();
  }

  private static void queue(FakeEngine engine, int slot, String id) {
    engine.queue(slot, 0, 4);
    engine.events().requestId(slot, 0, RequestId.of(id));
    engine.schedule(0, slot);
  }

  @Test
  void theLongestOfABatchStandsAtItsBucketInOpenMetricsAlone() {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> { })) {
      queue(engine, 0, "first");
      queue(engine, 1, "late \"one\"\\");
      engine.firstOutput(0, 30, 4);
      engine.firstOutput(1, 200, 4);
      assertThat(exemplars("vllm:time_to_first_token_seconds")).satisfiesExactly(
          line -> assertThat(line).contains("le=\"0.04\"").contains(" 1.0 # {request_id=\"first\"} 0.03 "),
          line -> assertThat(line).contains("le=\"0.25\"")
              .contains(" 2.0 # {request_id=\"late \\\"one\\\"\\\\\"} 0.2 "))
          .allMatch(line -> LINE.matcher(line).matches());
      engine.output(300, 2, () -> {
        engine.events().tokens(0, 0, 1);
        engine.events().tokens(1, 0, 1);
      });
      assertThat(exemplars("vllm:inter_token_latency_seconds")).singleElement().asString()
          .as("270 ms is longer than 100 ms").contains("{request_id=\"first\"} 0.27 ");
      engine.lastOutput(0, 310, 1, FinishReason.LENGTH);
      assertThat(exemplars("vllm:e2e_request_latency_seconds")).singleElement().asString()
          .contains("{request_id=\"first\"} 0.31 ").contains("le=\"0.5\"");
      assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4)).doesNotContain("request_id");
    }
  }

  @Test
  void aRequestWithoutAnIdHasNoExemplar() {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> { })) {
      engine.queue(0, 0, 4);
      engine.schedule(0, 0);
      engine.firstOutput(0, 30, 4);
      assertThat(registry.exposition(ExpositionFormat.OPENMETRICS_1_0_0)).doesNotContain(" # {");
    }
  }

  @Test
  void theLabelSetStaysInsideTheLimitOfTheStandard() {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> { })) {
      queue(engine, 0, "x".repeat(1000));
      engine.firstOutput(0, 30, 4);
      String line = exemplars("vllm:time_to_first_token_seconds").get(0);
      String id = line.substring(line.indexOf("request_id=\"") + 12, line.lastIndexOf('"'));
      assertThat("request_id".length() + id.length()).isLessThanOrEqualTo(128);
      assertThat(id).isEqualTo("x".repeat(64));
    }
  }
}
