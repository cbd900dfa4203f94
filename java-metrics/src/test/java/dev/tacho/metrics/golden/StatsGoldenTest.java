package dev.tacho.metrics.golden;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.HiddenMetrics;
import dev.tacho.metrics.prometheus.NumberText;
import dev.tacho.metrics.stats.CacheSource;
import dev.tacho.metrics.stats.ConnectorCacheStats;
import dev.tacho.metrics.stats.HitRateWindow;
import dev.tacho.metrics.stats.IterationCounter;
import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.PromptTokenStats;
import dev.tacho.metrics.stats.RequestSpeculation;
import dev.tacho.metrics.stats.ResidencySampler;
import dev.tacho.metrics.stats.ResidencyStats;
import dev.tacho.metrics.stats.SchedulerStats;
import dev.tacho.metrics.stats.SpeculationStats;
import dev.tacho.metrics.stats.TransferStats;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.function.Consumer;
import java.util.function.DoubleSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * The computed cases of small units. Those of the engine's own units (admission, command-line numbers, drafts from
 * n-grams) are not metrics and belong to the engine's tests.
 *
 * <table>
 *   <caption>differences on purpose (D)</caption>
 *   <tr><td>negotiation</td><td>a colon stays a colon; no escaping is offered</td></tr>
 * </table>
 */
class StatsGoldenTest {
  private static final Map<String, Consumer<JsonNode>> UNITS = Map.ofEntries(
      Map.entry("kv_cache_usage", StatsGoldenTest::kvCacheUsage),
      Map.entry("caching_metrics", StatsGoldenTest::hitRateWindow),
      Map.entry("prefix_cache_stats", StatsGoldenTest::prefixCache),
      Map.entry("cache_hit_source_outermost", StatsGoldenTest::outermost),
      Map.entry("cache_hit_source_values", c -> assertThat(
          Arrays.stream(CacheSource.values()).map(CacheSource::label)).containsExactlyElementsOf(texts(c))),
      Map.entry("prefill_stats", StatsGoldenTest::prefill),
      Map.entry("kv_residency", StatsGoldenTest::residency),
      Map.entry("kv_residency_rate", StatsGoldenTest::residencyRate),
      Map.entry("spec_decoding_stats", StatsGoldenTest::speculation),
      Map.entry("request_spec_decode_metrics", StatsGoldenTest::requestSpeculation),
      Map.entry("iteration_details", StatsGoldenTest::iterationDetails),
      Map.entry("prev_minor_version_was", StatsGoldenTest::hidden),
      Map.entry("execution_context", StatsGoldenTest::stepShape),
      Map.entry("nixl_reduce", StatsGoldenTest::transfers),
      Map.entry("content_negotiation", StatsGoldenTest::negotiation),
      Map.entry("float_text", StatsGoldenTest::number));

  @TestFactory
  Stream<DynamicTest> cases() {
    return GoldenFile.cases("stats").filter(c -> UNITS.containsKey(c.get("kind").asText())).map(c ->
        DynamicTest.dynamicTest(c.get("id").asText(), () -> UNITS.get(c.get("kind").asText()).accept(c)));
  }

  private static void kvCacheUsage(JsonNode c) {
    int blocks = c.get("num_gpu_blocks_with_null").asInt() - 1;
    double usage = SchedulerStats.kvCacheUsage(c.get("num_free_blocks").asInt(), blocks);
    assertThat(usage).isEqualTo(c.get("expected").asDouble());
  }

  private static void hitRateWindow(JsonNode c) {
    HitRateWindow window = new HitRateWindow(c.get("max_recent_requests").asInt(HitRateWindow.DEFAULT_REQUESTS));
    JsonNode observations = c.get("observations");
    for (int i = 0; i < observations.size(); i++) {
      JsonNode o = observations.get(i);
      if (o.get("reset").asBoolean()) {
        window.reset();
      }
      window.observe(o.get("requests").asLong(), o.get("queries").asLong(), o.get("hits").asLong());
      JsonNode expected = c.get("expected_after_each").get(i);
      assertThat(window.isEmpty()).isEqualTo(expected.get("empty").asBoolean());
      assertThat(window.rate()).isEqualTo(expected.get("hit_rate").asDouble());
    }
  }

  private static void prefixCache(JsonNode c) {
    ConnectorCacheStats stats = new ConnectorCacheStats();
    GoldenStats.connector(c.get("records"), stats);
    JsonNode expected = c.get("expected");
    assertThat(stats.lookups().requests()).isEqualTo(expected.get("requests").asLong());
    assertThat(stats.lookups().queries()).isEqualTo(expected.get("queries").asLong());
    assertThat(stats.lookups().hits()).isEqualTo(expected.get("hits").asLong());
    assertThat(stats.hasWarned()).isEqualTo(expected.get("warnings_attempted").asInt() > 0);
    for (CacheSource source : CacheSource.values()) {
      assertThat(stats.hits(source)).isEqualTo(expected.get("hits_by_source").path(source.label()).asLong());
    }
  }

  private static void outermost(JsonNode c) {
    List<CacheSource> sources = new ArrayList<>();
    c.get("input").forEach(source -> sources.add(GoldenStats.source(source.asText())));
    if (!sources.isEmpty()) {
      assertThat(CacheSource.outermost(sources).label()).isEqualTo(c.get("expected").asText());
    } else {
      assertThatThrownBy(() -> CacheSource.outermost(sources)).isInstanceOf(IllegalArgumentException.class);
    }
  }

  private static void prefill(JsonNode c) {
    JsonNode set = c.get("set");
    PromptTokenStats stats = new PromptTokenStats();
    long prompt = set.get("num_prompt_tokens").asLong();
    long local = set.get("num_local_cached_tokens").asLong();
    long external = set.get("num_external_cached_tokens").asLong();
    if (!c.path("after_set").isObject()) {
      assertThatThrownBy(() -> stats.add(prompt, local, external)).isInstanceOf(IllegalArgumentException.class);
      return;
    }
    stats.add(prompt, local, external);
    assertThat(stats.computed()).isEqualTo(c.get("after_set").get("num_computed_tokens").asLong());
    assertThat(stats.cached()).isEqualTo(c.get("after_set").get("num_cached_tokens").asLong());
    if (c.path("after_finalize").isObject()) {
      assertThat(PromptTokenStats.cacheCreation(c.get("finalize_num_cached_tokens").asLong(), prompt, stats.cached()))
          .isEqualTo(c.get("after_finalize").get("num_cache_creation_tokens").asLong());
    }
  }

  private static void residency(JsonNode c) {
    Queue<Double> given = new ArrayDeque<>();
    c.get("random_draws").forEach(draw -> given.add(draw.asDouble()));
    DoubleSupplier draws = () -> given.isEmpty() ? 0 : given.remove();
    int blocks = 1;
    for (JsonNode op : c.get("ops")) {
      blocks = Math.max(blocks, op.path("block").asInt() + 1);
    }
    ResidencySampler sampler = new ResidencySampler(blocks, c.get("sample_rate").asDouble(), draws);
    Iterator<JsonNode> expected = c.get("expected_after_each").iterator();
    for (JsonNode op : c.get("ops")) {
      long nanos = Math.round(op.get("t").asDouble() * 1e9);
      ResidencyStats drained = new ResidencyStats();
      switch (op.get("op").asText()) {
        case "allocate" -> sampler.allocated(op.get("block").asInt(), nanos);
        case "access" -> sampler.used(op.get("block").asInt(), nanos);
        case "evict" -> sampler.evicted(op.get("block").asInt(), nanos);
        case "reset" -> sampler.reset();
        default -> sampler.drainTo((life, idle, a, b, gap) -> add(drained, life, idle, a, b, gap));
      }
      JsonNode after = expected.next();
      assertThat(sampler.tracked()).isEqualTo(after.get("tracked_blocks").size());
      after.get("tracked_blocks").forEach(block -> assertThat(sampler.isTracked(block.asInt())).isTrue());
      assertThat(sampler.pending()).isEqualTo(after.get("pending_events").asInt());
      List<Double> gaps = new ArrayList<>();
      after.path("drained").forEach(event -> event.get("reuse_gaps_seconds").forEach(gap -> gaps.add(gap.asDouble())));
      assertThat(drained.lifetimes().toArray()).containsExactly(column(after, "lifetime_seconds"));
      assertThat(drained.idleTimes().toArray()).containsExactly(column(after, "idle_seconds"));
      assertThat(drained.reuseGaps().toArray())
          .containsExactly(gaps.stream().mapToDouble(Double::doubleValue).toArray());
    }
  }

  private static void add(ResidencyStats stats, long lifetimeNanos, long idleNanos, long... gapNanos) {
    stats.add(lifetimeNanos / 1e9, idleNanos / 1e9);
    Arrays.stream(gapNanos).filter(gap -> gap >= 0).forEach(gap -> stats.addReuseGap(gap / 1e9));
  }

  private static double[] column(JsonNode after, String name) {
    double[] values = new double[after.path("drained").size()];
    Arrays.setAll(values, i -> after.get("drained").get(i).get(name).asDouble());
    return values;
  }

  private static void residencyRate(JsonNode c) {
    double rate = c.get("sample_rate").asDouble();
    if (c.get("accepted").asBoolean()) {
      assertThat(new ResidencySampler(1, rate, () -> 0).tracked()).isZero();
    } else {
      assertThatThrownBy(() -> new ResidencySampler(1, rate, () -> 0)).hasMessageContaining("(0, 1]");
    }
  }

  private static void speculation(JsonNode c) {
    SpeculationStats stats = new SpeculationStats();
    int positions = c.get("num_spec_tokens").asInt();
    stats.reset(positions);
    c.get("drafts").forEach(d -> stats.add(d.get("draft").asInt(), d.get("accepted").asInt()));
    JsonNode expected = c.get("expected");
    assertThat(stats.drafts()).isEqualTo(expected.get("num_drafts").asLong());
    assertThat(stats.draftTokens()).isEqualTo(expected.get("num_draft_tokens").asLong());
    assertThat(stats.acceptedTokens()).isEqualTo(expected.get("num_accepted_tokens").asLong());
    for (int i = 0; i < positions; i++) {
      assertThat(stats.acceptedAt(i)).isEqualTo(expected.get("num_accepted_tokens_per_pos").get(i).asLong());
      assertThat(stats.draftedAt(i)).isEqualTo(expected.get("num_draft_tokens_per_pos").get(i).asLong());
    }
  }

  private static void requestSpeculation(JsonNode c) {
    RequestSpeculation request =
        new RequestSpeculation(c.get("num_spec_tokens").asInt(), c.get("level").asText().equals("detailed"));
    c.get("steps").forEach(step -> request.add(step.get("draft").asInt(), step.get("accepted").asInt()));
    JsonNode expected = c.get("expected");
    assertThat(request.meanAcceptanceLength()).isEqualTo(expected.get("mean_acceptance_length").asDouble());
    assertThat(request.acceptanceRate()).isEqualTo(expected.get("draft_acceptance_rate").asDouble());
    assertThat(request.acceptanceHistogram()).containsExactly(longs(expected.get("acceptance_histogram")));
    assertThat(request.steps()).isEqualTo(expected.get("num_spec_steps").asLong());
    assertThat(request.acceptedTokens()).isEqualTo(expected.get("num_accepted_draft_tokens").asLong());
    assertThat(request.draftedTokens()).isEqualTo(expected.get("num_draft_tokens").asLong());
    assertThat(request.maxDraftTokens()).isEqualTo(expected.get("num_spec_tokens").asInt());
    assertThat(request.acceptedByStep().stream().mapToLong(Integer::longValue).toArray())
        .containsExactly(longs(expected.path("per_step_accepted")));
    assertThat(request.draftedByStep().stream().mapToLong(Integer::longValue).toArray())
        .containsExactly(longs(expected.path("per_step_drafted")));
  }

  /** Encoder inputs are not counted: the engine has text models. */
  private static void iterationDetails(JsonNode c) {
    IterationCounter counter = new IterationCounter();
    c.get("new_requests").forEach(r -> counter.add(true, r.get("num_scheduled_tokens").asInt(), 0));
    c.get("cached_requests").forEach(r ->
        counter.add(false, r.get("num_scheduled_tokens").asInt(), r.get("num_output_tokens").asInt()));
    IterationDetails details = counter.details(0, 0);
    JsonNode expected = c.get("expected");
    assertThat(details.contextRequests()).isEqualTo(expected.get("num_ctx_requests").asInt());
    assertThat(details.contextTokens()).isEqualTo(expected.get("num_ctx_tokens").asInt());
    assertThat(details.generationRequests()).isEqualTo(expected.get("num_generation_requests").asInt());
    assertThat(details.generationTokens()).isEqualTo(expected.get("num_generation_tokens").asInt());
  }

  private static void hidden(JsonNode c) {
    JsonNode current = c.get("current");
    assertThat(HiddenMetrics.areShown(current.get(0).asInt(), current.get(1).asInt(), c.get("argument").asText()))
        .isEqualTo(c.get("expected").asBoolean());
  }

  private static void stepShape(JsonNode c) {
    StepShape shape = new StepShape(4096);
    for (JsonNode r : c.get("requests")) {
      int tokens = r.get("num_tokens").asInt();
      shape.add(r.get("is_prefill").asBoolean(), tokens, r.get("context_len").asLong() - tokens);
    }
    JsonNode expected = c.get("expected");
    assertThat(shape.prefillTokens()).isEqualTo(expected.get("prefill_num_tokens").asLong());
    assertThat(shape.decodeTokens()).isEqualTo(expected.get("decode_num_tokens").asLong());
    assertThat(shape.prefillContext()).isEqualTo(expected.get("prefill_context_len").asLong());
    assertThat(shape.decodeContext()).isEqualTo(expected.get("decode_context_len").asLong());
    assertThat(shape.product()).isEqualTo(expected.get("total_token_context_product").asLong());
    assertThat(shape.productWindowed()).isEqualTo(expected.get("total_token_context_product_window_4096").asLong());
    assertThat(shape.prefillContextWindowed()).isEqualTo(expected.get("prefill_context_len_window_4096").asLong());
    assertThat(shape.decodeContextWindowed()).isEqualTo(expected.get("decode_context_len_window_4096").asLong());
    assertThat(shape.logitTokens()).isEqualTo(expected.get("num_logits_tokens").asLong());
  }

  private static void transfers(JsonNode c) {
    TransferStats stats = new TransferStats();
    GoldenStats.transfers(c.get("data"), stats);
    assertThat(stats.isEmpty()).isEqualTo(c.get("is_empty").asBoolean());
    Map<String, Number> summary = stats.summary();
    JsonNode expected = c.get("expected");
    assertThat(summary).hasSize(expected.size());
    expected.properties().forEach(e -> {
      assertThat(summary.get(e.getKey()).doubleValue()).as(e.getKey()).isEqualTo(e.getValue().asDouble());
      assertThat(summary.get(e.getKey()) instanceof Double).as(e.getKey()).isEqualTo(e.getValue().isDouble());
    });
  }

  private static void negotiation(JsonNode c) {
    String contentType = ExpositionFormat.ofAccept(c.get("accept").asText()).contentType();
    assertThat(c.get("expected_content_type").asText()).startsWith(contentType);
  }

  private static void number(JsonNode c) {
    double value = Double.longBitsToDouble(Long.parseUnsignedLong(c.get("input_bits_hex").asText(), 16));
    assertThat(NumberText.of(value)).isEqualTo(c.get("expected").asText());
  }

  private static List<String> texts(JsonNode c) {
    List<String> texts = new ArrayList<>();
    c.get("expected").forEach(text -> texts.add(text.asText()));
    return texts;
  }

  private static long[] longs(JsonNode list) {
    long[] values = new long[list.size()];
    Arrays.setAll(values, i -> list.get(i).asLong());
    return values;
  }
}
