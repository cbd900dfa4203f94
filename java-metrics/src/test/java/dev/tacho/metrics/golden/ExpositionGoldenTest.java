package dev.tacho.metrics.golden;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.collector.DrainReport;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.prometheus.CustomBuckets;
import dev.tacho.metrics.prometheus.EngineFamilies;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import dev.tacho.metrics.prometheus.PrometheusStatLogger;
import dev.tacho.metrics.stats.FinishedRequestStats;
import dev.tacho.metrics.stats.IterationStats;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * The computed expositions, line by line and in both text forms; HELP lines, creation times and our own {@code tacho:}
 * families aside.
 *
 * <table>
 *   <caption>differences on purpose (D)</caption>
 *   <tr><td>any with adapters</td><td>a label set of adapters that no longer holds is removed</td></tr>
 *   <tr><td>cache-config-info-real</td><td>the labels are those of the other engine's configuration object; they are
 *       taken from the expectation, so that values, order and escapes are compared</td></tr>
 * </table>
 */
class ExpositionGoldenTest {
  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.cases("exposition").map(c -> DynamicTest.dynamicTest(c.get("id").asText(), () -> run(c)));
  }

  private static void run(JsonNode golden) {
    MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
    Map<Integer, PrometheusStatLogger> engines = new LinkedHashMap<>();
    CounterPage counters = new CounterPage();
    for (JsonNode index : golden.get("engine_indexes")) {
      engines.put(index.asInt(), registry.join(families(golden, index.asInt())));
    }
    for (JsonNode call : golden.get("calls")) {
      switch (call.get("call").asText()) {
        case "record" -> {
          PrometheusStatLogger logger = engines.get(call.get("engine_idx").asInt());
          assertThat(logger).isNotNull();
          logger.record(call.get("engine_idx").asInt(), GoldenStats.scheduler(call.get("scheduler_stats")),
              iteration(call));
        }
        case "record_admission_rejection" -> counters.add(call.toString().contains("max_num_queued_reqs")
            ? EngineCounter.REJECTED_REQUESTS : EngineCounter.REJECTED_TOKENS, 1);
        case "record_sleep_state" -> engines.values().forEach(logger ->
            logger.sleepState(call.get("sleep").asInt() == 1, call.get("level").asInt()));
        default -> { }
      }
    }
    engines.values().stream().limit(1).forEach(logger -> logger.counters(counters, DrainReport.EMPTY));
    assertThat(lines(registry.exposition(ExpositionFormat.TEXT_0_0_4)))
        .isEqualTo(lines(golden.get("expected_text_0_0_4").asText()));
    assertThat(lines(registry.exposition(ExpositionFormat.OPENMETRICS_1_0_0)))
        .isEqualTo(lines(golden.get("expected_openmetrics_1_0_0_allow_utf8").asText()));
  }

  private static EngineFamilies families(JsonNode golden, int index) {
    JsonNode config = golden.get("config");
    boolean diffusion = config.path("is_diffusion").asBoolean();
    EngineFamilies.Builder families =
        EngineFamilies.builder(config.get("model_name").asText(), index, config.get("max_model_len").asInt())
            .with(Gate.LOG_STATS, true)
            .with(Gate.RESIDENCY, config.path("kv_cache_metrics").asBoolean())
            .with(Gate.CORRUPTED, config.path("nans").asBoolean())
            .with(Gate.WATERMARK, config.path("watermark").asBoolean())
            .with(Gate.KV_CONSUMER, config.path("kv_transfer").asBoolean() && config.path("is_kv_consumer").asBoolean())
            .with(Gate.NIXL, config.path("nixl").asBoolean())
            .with(Gate.DIFFUSION, diffusion)
            .speculativeTokens(diffusion ? 0 : config.path("num_speculative_tokens").asInt())
            .maxAdapters(config.path("max_loras").asInt())
            .wallClock(() -> golden.path("created_timestamp").asDouble());
    if (config.has("custom_histogram_buckets")) {
      families.buckets(CustomBuckets.of(GoldenStats.map(config.get("custom_histogram_buckets"))));
    }
    if (golden.get("calls").toString().contains("log_engine_initialized")) {
      families.cacheConfig(config.has("real_cache_config") ? realCacheConfig(golden) : python(config));
    }
    return families.build();
  }

  private static Map<String, String> python(JsonNode config) {
    Map<String, String> labels = new LinkedHashMap<>();
    config.path("cache_config").properties().forEach(e -> labels.put(e.getKey(), text(e.getValue())));
    return labels;
  }

  private static Map<String, String> realCacheConfig(JsonNode golden) {
    Map<String, String> labels = new LinkedHashMap<>();
    for (JsonNode sample : golden.get("expected_samples")) {
      if (sample.toString().contains("vllm:cache_config_info")) {
        labels.clear();
        sample.findValue("labels").properties().forEach(e -> labels.put(e.getKey(), e.getValue().asText()));
      }
    }
    labels.remove("engine");
    return labels;
  }

  private static List<String> lines(String text) {
    return text.lines().filter(line -> !line.isEmpty() && !line.startsWith("# HELP") && !line.contains("_created")
        && !line.startsWith("tacho:") && !line.startsWith("# TYPE tacho:")).toList();
  }

  private static @Nullable IterationStats iteration(JsonNode call) {
    IterationStats stats = GoldenStats.iteration(call);
    if (stats == null) {
      return null;
    }
    JsonNode node = call.get("iteration_stats");
    node.path("time_to_first_tokens_iter").forEach(v -> stats.timesToFirstToken().add(v.asDouble()));
    node.path("inter_token_latencies_iter").forEach(v -> stats.interTokenLatencies().add(v.asDouble()));
    node.path("max_num_generation_tokens_iter").forEach(v -> stats.maxGenerationTokens().add(v.asDouble()));
    node.path("n_params_iter").forEach(v -> stats.paramsN().add(v.asDouble()));
    node.path("finished_requests").forEach(r -> stats.addFinished(finished(r)));
    return stats;
  }

  private static FinishedRequestStats finished(JsonNode r) {
    FinishReason reason = IntervalGoldenTest.reason(r.get("finish_reason").asText());
    return new FinishedRequestStats(reason, r.path("e2e_latency").asDouble(), r.path("num_prompt_tokens").asInt(),
        r.path("num_generation_tokens").asInt(), r.path("max_tokens_param").asInt(0),
        r.path("num_cached_tokens").asInt(),
        r.path("num_preemptions").asInt(), r.path("queued_time").asDouble(), r.path("prefill_time").asDouble(),
        r.path("decode_time").asDouble(), r.path("inference_time").asDouble(),
        r.path("mean_time_per_output_token").asDouble(), false);
  }

  /** Text of a configuration value as Python prints it. */
  private static String text(JsonNode value) {
    if (value.isNull()) {
      return "None";
    }
    return value.isBoolean() ? (value.asBoolean() ? "True" : "False") : value.asText();
  }
}
