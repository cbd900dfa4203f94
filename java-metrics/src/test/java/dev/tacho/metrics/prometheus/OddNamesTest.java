package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tacho.metrics.FakeEngine;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventDescriptor;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.stats.OffloadSeries;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ten thousand odd names of models, adapters and sources: the series stay as few as the rules say. */
class OddNamesTest {
  private static final int NAMES = 10_000;

  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  private static String odd(Random random) {
    int[] points = random.ints(1 + random.nextInt(12), 0, 0x3000).toArray();
    return new String(points, 0, points.length) + (random.nextBoolean() ? "\"\\\n\uD800{}," : "\uD83D\uDE80 =#");
  }

  @ParameterizedTest
  @ValueSource(longs = 11)
  void modelsThatComeAndGoLeaveNothing(long seed) {
    Random random = new Random(seed);
    for (int i = 0; i < NAMES; i++) {
      PrometheusStatLogger logger =
          registry.join(EngineFamilies.builder(odd(random), 0, 10).with(MetricFamily.Gate.ALWAYS, true).build());
      if (i % 100 == 0) {
        assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4).lines()
            .filter(l -> l.startsWith("tacho:engine_state{")).toList()).hasSize(7)
            .allMatch(l -> l.matches("tacho:engine_state\\{engine=\"0\",model_name=\".*\",state=\"[a-z]+\"} [01]\\.0"));
      }
      logger.close();
    }
    assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(longs = 12)
  void adaptersAreOneSeriesOfBoundedLength(long seed) {
    Random random = new Random(seed);
    try (FakeEngine engine = new FakeEngine(0, registry, o -> o.maxAdapters(4))) {
      for (int i = 0; i < NAMES; i++) {
        int adapter = engine.events().name("a" + i + odd(random));
        engine.events().queued(i, 0, i, i, 1, 1, 0, 1, adapter);
        engine.events().commit();
        if (i % 500 == 0) {
          engine.snapshot(1, 0, 0, 1, 1);
          registry.collector().drain();
        }
      }
      engine.snapshot(1, 0, 0, 1, 1);
      assertThat(series("vllm:lora_requests_info{")).singleElement().asString().hasSizeLessThan(10_000)
          .contains(",...\"");
      for (int i = 0; i < NAMES; i++) {
        engine.events().ended(i, 0, FinishReason.ABORT);
        engine.events().commit();
      }
      engine.snapshot(0, 0, 0, 1, 1);
      assertThat(series("vllm:lora_requests_info{")).singleElement().asString()
          .contains("running_lora_adapters=\"\"");
    }
  }

  /** Numbers of names are few and are given out anew; an adapter in use keeps its name all the same. */
  @ParameterizedTest
  @ValueSource(longs = 14)
  void anAdapterInUseKeepsItsNameWhileOthersComeAndGo(long seed) {
    Random random = new Random(seed);
    try (FakeEngine engine = new FakeEngine(0, registry, o -> o.maxAdapters(4))) {
      engine.events().queued(0, 0, 0, 0, 1, 1, 0, 1, engine.events().name("keeper"));
      for (int i = 1; i <= NAMES; i++) {
        int number = engine.events().name(i + odd(random));
        assertThat(number).isBetween(1, EventDescriptor.MAX_NAMES);
        engine.events().queued(1, i, i, i, 1, 1, 0, 1, number);
        engine.events().ended(1, i, FinishReason.ABORT);
        engine.events().commit();
        if (i % 500 == 0) {
          engine.snapshot(1, 0, 0, 1, 1);
          registry.collector().drain();
        }
      }
      engine.snapshot(1, 0, 0, 1, 1);
      assertThat(series("vllm:lora_requests_info{")).singleElement().asString()
          .contains("running_lora_adapters=\"keeper\"");
      engine.events().queued(2, 0, 0, 0, 1, 1, 0, 1, engine.events().name("keeper"));
      engine.events().ended(0, 0, FinishReason.ABORT);
      engine.snapshot(1, 0, 0, 1, 1);
      assertThat(series("vllm:lora_requests_info{")).singleElement().asString()
          .contains("running_lora_adapters=\"keeper\"");
    }
  }

  @Test
  void methodsAndTiersThatNobodyAnnouncedMakeNoSeries() {
    HttpMetrics http = HttpMetrics.in(registry);
    ToolParserMetrics tools = new ToolParserMetrics(registry, "m");
    Random random = new Random(13);
    try (FakeEngine engine = new FakeEngine(0, registry,
        o -> o.families(f -> f.offload(OffloadDescription.toHost(1, 1, 1, 1, 0, List.of("disk")))))) {
      for (int i = 0; i < NAMES; i++) {
        http.answered(odd(random), "/v1/completions", 200, 1, 1, 1);
        tools.called(true, true, odd(random));
        engine.source().connectors().offload(OffloadSeries.TIER_READ_BYTES, i, 1);
      }
      engine.snapshot(0, 0, 0, 1, 1);
      assertThat(series("http_requests_total{")).containsExactly(
          "http_requests_total{handler=\"/v1/completions\",method=\"OTHER\",status=\"2xx\"} 10000.0");
      assertThat(series("vllm:tool_call_parser_invocations_total{")).hasSize(12);
      assertThat(series("vllm:kv_offload_tiering_read_bytes_total{")).containsExactly(
          "vllm:kv_offload_tiering_read_bytes_total{engine=\"0\",model_name=\"m\",tier=\"disk\"} 1.0");
    }
  }

  private List<String> series(String start) {
    return registry.exposition(ExpositionFormat.TEXT_0_0_4).lines().filter(l -> l.startsWith(start)).toList();
  }
}
