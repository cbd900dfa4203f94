package dev.tacho.metrics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.prometheus.EngineFamilies;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricCatalog;
import dev.tacho.metrics.prometheus.MetricFamily;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import dev.tacho.metrics.prometheus.OffloadDescription;
import dev.tacho.metrics.prometheus.PrometheusStatLogger;
import dev.tacho.metrics.stats.FinishedRequestStats;
import dev.tacho.metrics.stats.OffloadSeries;
import dev.tacho.metrics.stats.SchedulerStats;
import io.prometheus.client.CollectorRegistry;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What users of such systems hit, by the numbers of the list of user cases. */
class UserCasesTest {
  private final FakeEngine engine = new FakeEngine();

  @AfterEach
  void close() {
    engine.close();
  }

  @Test
  void userCase1OneRequestWithFourSequences() {
    for (int slot = 0; slot < 4; slot++) {
      engine.queue(slot, 0, 10, 77, 4);
    }
    engine.schedule(1, 0, 1, 2, 3);
    for (int slot = 0; slot < 4; slot++) {
      engine.firstOutput(slot, 10 + slot, 10);
      engine.lastOutput(slot, 20 + slot, 1, FinishReason.STOP);
    }
    assertThat(engine.histogram("vllm:request_params_n")).containsEntry("count", 1.0).containsEntry("sum", 4.0);
    assertThat(engine.histogram("vllm:e2e_request_latency_seconds")).containsEntry("count", 4.0);
    assertThat(engine.value("vllm:prompt_tokens_total")).isEqualTo(40);
  }

  @Test
  void userCase2AnAbortedClientCountsAsAbortAndIsInNoLatency() {
    engine.queue(0, 0, 5);
    engine.schedule(1, 0);
    engine.firstOutput(0, 10, 5);
    engine.abort(0);
    assertThat(engine.value("vllm:request_success_total", "finished_reason=\"abort\"")).isEqualTo(1);
    assertThat(engine.histogram("vllm:e2e_request_latency_seconds")).containsEntry("count", 0.0);
    assertThat(engine.histogram("vllm:request_queue_time_seconds")).containsEntry("count", 0.0);
    assertThat(engine.histogram("vllm:time_to_first_token_seconds")).containsEntry("count", 1.0);
  }

  @Test
  void userCase3GaugesFallToZeroWithTheLastAbort() {
    engine.queue(0, 0, 5);
    engine.queue(1, 0, 5);
    engine.schedule(1, 0);
    engine.snapshot(1, 1, 0, 90, 100);
    assertThat(engine.value("vllm:num_requests_running")).isEqualTo(1);
    assertThat(engine.value("vllm:num_requests_waiting")).isEqualTo(1);
    assertThat(engine.value("vllm:kv_cache_usage_perc")).isEqualTo(0.1, within(1e-12));
    engine.abort(0);
    engine.abort(1);
    engine.snapshot(0, 0, 0, 100, 100);
    assertThat(engine.value("vllm:num_requests_running")).isZero();
    assertThat(engine.value("vllm:num_requests_waiting")).isZero();
    assertThat(engine.value("vllm:kv_cache_usage_perc")).isZero();
    assertThat(engine.value("vllm:request_success_total", "finished_reason=\"abort\"")).isEqualTo(2);
  }

  @Test
  void userCase4QueuedAgainLaterKeepsTheQueueTime() {
    engine.queue(0, 1000, 5);
    engine.schedule(2000, 0);
    engine.firstOutput(0, 3000, 5);
    engine.events().queued(0, 0, FakeEngine.nanos(50_000), 0, 5, 16, 0, 1, 0);
    engine.lastOutput(0, 60_000, 1, FinishReason.STOP);
    assertThat(engine.finished()).singleElement()
        .satisfies(r -> assertThat(r.queuedSeconds()).isEqualTo(1.0));
  }

  @Test
  void userCase5PrefillAndDecodeAreNeverSwapped() {
    engine.queue(0, 0, 4000);
    engine.schedule(100, 0);
    engine.output(9100, 1, () -> {
      engine.events().prefillStats(0, 0, 4000, 0, 0, 0);
      engine.events().tokens(0, 0, 1);
      engine.events().finished(0, 0, FinishReason.LENGTH);
    });
    engine.queue(1, 0, 4);
    engine.schedule(100, 1);
    engine.firstOutput(1, 150, 4);
    for (int i = 1; i < 10; i++) {
      engine.output(1, 150 + 900L * i, 1);
    }
    engine.lastOutput(1, 150 + 9000, 1, FinishReason.LENGTH);
    List<FinishedRequestStats> finished = engine.finished();
    assertThat(finished).hasSize(2);
    assertThat(finished.get(0).prefillSeconds()).isEqualTo(9.0);
    assertThat(finished.get(0).decodeSeconds()).isZero();
    assertThat(finished.get(0).secondsPerOutputToken()).isZero();
    assertThat(finished.get(1).prefillSeconds()).isEqualTo(0.05);
    assertThat(finished.get(1).decodeSeconds()).isEqualTo(9.0);
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5})
  void userCase6StampsAreInOrder(long seed) {
    Random random = new Random(seed);
    Map<Integer, Integer> tokens = new HashMap<>();
    long now = 0;
    int started = 0;
    for (int i = 0; i < 2000; i++) {
      now += random.nextInt(20);
      if (random.nextInt(4) == 0) {
        engine.queue(started, now, 10);
        now += random.nextInt(20);
        engine.schedule(now, started);
        tokens.put(started++, 0);
      } else if (!tokens.isEmpty()) {
        int slot = List.copyOf(tokens.keySet()).get(random.nextInt(tokens.size()));
        switch (random.nextInt(6)) {
          case 0 -> {
            engine.events().preempted(slot, 0, FakeEngine.nanos(now));
            engine.schedule(now + random.nextInt(5), slot);
          }
          case 1 -> engine.events().queued(slot, 0, FakeEngine.nanos(now), 0, 10, 0, 0, 1, 0);
          case 2 -> {
            engine.lastOutput(slot, now, random.nextInt(3), FinishReason.STOP);
            tokens.remove(slot);
          }
          default -> engine.output(slot, now, 1);
        }
      }
    }
    assertThat(engine.finished()).hasSizeGreaterThan(100).allSatisfy(r -> {
      assertThat(r.queuedSeconds()).isNotNegative();
      assertThat(r.prefillSeconds()).isNotNegative();
      assertThat(r.decodeSeconds()).isNotNegative();
      double parts = r.queuedSeconds() + r.prefillSeconds() + r.decodeSeconds();
      assertThat(r.endToEndSeconds()).isGreaterThanOrEqualTo(parts - 1e-9);
      assertThat(r.inferenceSeconds()).isCloseTo(r.prefillSeconds() + r.decodeSeconds(), within(1e-9));
    });
  }

  @Test
  void userCase7APreemptionCountsThoughTheRequestIsAborted() {
    engine.queue(0, 0, 5);
    engine.schedule(1, 0);
    engine.events().preempted(0, 0, FakeEngine.nanos(2));
    engine.events().commit();
    assertThat(engine.value("vllm:num_preemptions_total")).as("before any output (case 35)").isEqualTo(1);
    engine.abort(0);
    assertThat(engine.value("vllm:num_preemptions_total")).isEqualTo(1);
  }

  @Test
  void userCase8FirstTokensMayExceedFinishedRequests() {
    engine.queue(0, 0, 5);
    engine.queue(1, 0, 5);
    engine.schedule(1, 0, 1);
    engine.firstOutput(0, 10, 5);
    engine.firstOutput(1, 11, 5);
    engine.abort(1);
    assertThat(engine.histogram("vllm:time_to_first_token_seconds")).containsEntry("count", 2.0);
    assertThat(engine.histogram("vllm:e2e_request_latency_seconds")).containsEntry("count", 0.0);
  }

  @Test
  void userCase10UsageCountsReferencedBlocksAlone() {
    engine.snapshot(1, 0, 0, 90, 100);
    assertThat(engine.value("vllm:kv_cache_usage_perc")).isEqualTo(0.1, within(1e-12));
    engine.snapshot(0, 0, 0, 100, 100);
    assertThat(engine.value("vllm:kv_cache_usage_perc")).isZero();
  }

  @Test
  void userCase11BucketsAreReplacedOneFamilyAtATime() {
    try (FakeEngine custom = new FakeEngine(0, MetricsRegistry.create(MetricsCollector.onDemand()),
        o -> o.customHistogramBuckets(Map.of("request_latency", List.of(0.01, 0.05, 0.1))))) {
      String text = custom.source().exposition(ExpositionFormat.TEXT_0_0_4);
      assertThat(text.lines().filter(l -> l.startsWith("vllm:e2e_request_latency_seconds_bucket"))).hasSize(4);
      assertThat(text.lines().filter(l -> l.startsWith("vllm:time_to_first_token_seconds_bucket"))).hasSize(23);
    }
    EngineMetricsOptions.Builder options = EngineMetricsOptions.builder("m", 10);
    assertThatThrownBy(() -> options.customHistogramBuckets(Map.of("latency", List.of(1.0))))
        .hasMessageContaining("latency").hasMessageContaining("known: inter_token_latency, iteration_tokens");
    assertThatThrownBy(() -> options.customHistogramBuckets(Map.of("request_latency", List.of(true, 2))))
        .hasMessageContaining("request_latency").hasMessageContaining("boolean");
    assertThatThrownBy(() -> options.customHistogramBuckets(Map.of("request_latency", List.of(2, 1))))
        .hasMessageContaining("request_latency").hasMessageContaining("2.0 is followed by 1.0");
  }

  @Test
  void userCase12AdaptersInTurnAreOneSeries() {
    try (FakeEngine lora = new FakeEngine(0, MetricsRegistry.create(MetricsCollector.onDemand()),
        o -> o.maxAdapters(4))) {
      for (int i = 0; i < 3; i++) {
        lora.events().queued(i, 0, 0, 0, 5, 0, 0, 1, lora.events().name("adapter-" + i));
        lora.snapshot(0, 1, 0, 1, 1);
        assertThat(adapterSeries(lora)).containsExactly("vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters="
            + "\"adapter-" + i + "\",waiting_lora_adapters=\"adapter-" + i + "\"}");
        lora.abort(i);
      }
      lora.snapshot(0, 0, 0, 1, 1);
      assertThat(adapterSeries(lora)).containsExactly(
          "vllm:lora_requests_info{max_lora=\"4\",running_lora_adapters=\"\",waiting_lora_adapters=\"\"}");
    }
  }

  @Test
  void draftsEvictionsAndNansAreCounted() {
    try (FakeEngine full = new FakeEngine(0, MetricsRegistry.create(MetricsCollector.onDemand()),
        o -> o.speculativeTokens(3).kvCacheMetrics(true).computeNansInLogits(true))) {
      full.queue(0, 0, 5);
      full.schedule(1, 0);
      full.output(2, 1, () -> {
        full.events().draft(0, 0, 3, 2);
        full.events().corrupted(0, 0);
        full.events().tokens(0, 0, 3);
        full.events().finished(0, 0, FinishReason.STOP);
        full.events().evicted(2_000_000_000, 1_000_000, 5_000_000, -1, -1);
      });
      full.snapshot(0, 0, 0, 1, 1);
      assertThat(full.value("vllm:spec_decode_num_drafts_total")).isEqualTo(1);
      assertThat(full.value("vllm:spec_decode_num_draft_tokens_total")).isEqualTo(3);
      assertThat(full.value("vllm:spec_decode_num_accepted_tokens_total")).isEqualTo(2);
      assertThat(full.value("vllm:spec_decode_num_accepted_tokens_per_pos_total", "position=\"1\"")).isEqualTo(1);
      assertThat(full.value("vllm:spec_decode_num_accepted_tokens_per_pos_total", "position=\"2\"")).isEqualTo(0);
      assertThat(full.value("vllm:corrupted_requests_total")).isEqualTo(1);
      assertThat(full.histogram("vllm:kv_block_lifetime_seconds")).isEqualTo(Map.of("count", 1.0, "sum", 2.0));
      assertThat(full.histogram("vllm:kv_block_idle_before_evict_seconds"))
          .isEqualTo(Map.of("count", 1.0, "sum", 0.001));
      assertThat(full.histogram("vllm:kv_block_reuse_gap_seconds")).isEqualTo(Map.of("count", 1.0, "sum", 0.005));
      full.snapshot(0, 0, 0, 1, 1);
      assertThat(full.value("vllm:spec_decode_num_drafts_total")).as("a snapshot counts once").isEqualTo(1);
    }
  }

  @Test
  void userCase14ThreeTokensInOneOutputAreOneSample() {
    engine.queue(0, 0, 5);
    engine.schedule(1, 0);
    engine.firstOutput(0, 10, 5);
    engine.lastOutput(0, 40, 3, FinishReason.STOP);
    assertThat(engine.interTokenLatencies()).containsExactly(0.03);
    assertThat(engine.finished().get(0).secondsPerOutputToken()).isEqualTo(0.01, within(1e-12));
    assertThat(engine.value("vllm:generation_tokens_total")).isEqualTo(4);
  }

  @Test
  void userCase15EveryFamilyIsThereBeforeTheFirstRequest() {
    String text = engine.source().exposition(ExpositionFormat.TEXT_0_0_4);
    for (MetricFamily family : MetricCatalog.families()) {
      if (family.gate() == MetricFamily.Gate.ALWAYS || family.gate() == MetricFamily.Gate.LOG_STATS) {
        assertThat(text).contains("# TYPE " + family.exposedName() + " " + family.type().text() + "\n");
        for (String value : family.values()) {
          assertThat(text).containsPattern(family.exposedName() + "(_bucket)?\\{[^}]*=\"" + value + "\"");
        }
      }
    }
    assertThat(text.lines().filter(l -> !l.startsWith("#") && !l.endsWith(" 0.0")))
        .as("but for the states, the metrics' own memory and the time that looking took, everything is 0")
        .filteredOn(l -> !l.startsWith("tacho:metrics_drain_seconds_total"))
        .allMatch(l -> l.startsWith("vllm:engine_sleep_state") || l.startsWith("tacho:engine_state")
            || l.startsWith("tacho:memory_bytes{area=\"metrics\""))
        .hasSize(3);
  }

  @Test
  void userCase16MetricsWithoutAServer() {
    engine.queue(0, 0, 5);
    engine.schedule(1, 0);
    engine.firstOutput(0, 10, 5);
    assertThat(engine.source().exposition(ExpositionFormat.TEXT_0_0_4))
        .contains("vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 5.0\n");
    MetricsSnapshot snapshot = engine.source().snapshot();
    assertThat(snapshot.counter("vllm:prompt_tokens", Map.of("engine", "0"))).get()
        .extracting(MetricsSnapshot.Counter::value).isEqualTo(5.0);
    assertThat(snapshot.histogram("vllm:time_to_first_token_seconds", Map.of())).get()
        .satisfies(h -> assertThat(h.quantile(0.5)).isBetween(0.005, 0.01));
  }

  @Test
  void userCase17EveryNameRegisters() {
    CollectorRegistry application = new CollectorRegistry(true);
    MetricsRegistry registry = MetricsRegistry.of(application);
    EngineFamilies.Builder everything = EngineFamilies.builder("m", 0, 100).cacheConfig(Map.of("block_size", "16"))
        .speculativeTokens(2).maxAdapters(2).workers(1)
        .offload(OffloadDescription.toHost(1, 1, 1, 1, 2, List.of("disk")));
    for (MetricFamily.Gate gate : MetricFamily.Gate.values()) {
      everything.with(gate, true);
    }
    try (PrometheusStatLogger engine = registry.join(everything.build())) {
      SchedulerStats stats = new SchedulerStats();
      for (OffloadSeries series : OffloadSeries.values()) {
        stats.offload().report(series, 0, 1);
      }
      engine.record(0, stats, null);
      Map<String, String> types = new HashMap<>();
      Collections.list(application.metricFamilySamples()).forEach(f -> types.put(f.name, f.type.toString()));
      assertThat(types).hasSize(MetricCatalog.families().size())
          .containsEntry("vllm:iteration_tokens_total", "HISTOGRAM")
          .containsEntry("vllm:cache_config_info", "GAUGE")
          .containsEntry("vllm:prompt_tokens", "COUNTER");
      assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4))
          .contains("vllm:cache_config_info{block_size=\"16\",engine=\"0\"} 1.0\n");
      assertThat(application.getSampleValue("vllm:cache_config_info", new String[] {"block_size", "engine"},
          new String[] {"16", "0"})).isEqualTo(1.0);
    }
  }

  @Test
  @Timeout(60)
  void userCase34CountEqualsTheInfiniteBucketInEveryScrape() throws InterruptedException {
    MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
    AtomicBoolean done = new AtomicBoolean();
    AtomicInteger scrapes = new AtomicInteger();
    try (FakeEngine busy = new FakeEngine(0, registry, o -> { })) {
      Thread producer = new Thread(() -> {
        for (int i = 0; !done.get(); i++) {
          while (i > 500 * (scrapes.get() + 1) && !done.get()) {
            Thread.onSpinWait();
          }
          busy.events().queued(0, i, i, i, 5, 16, 0, 1, 0);
          busy.events().scheduled(0, i, i);
          int generation = i;
          busy.output(i, 1, () -> {
            busy.events().tokens(0, generation, 1);
            busy.events().finished(0, generation, FinishReason.STOP);
          });
        }
      });
      producer.start();
      try {
        assertThat(largestCount(registry, scrapes)).isPositive();
      } finally {
        done.set(true);
        Await.ended(producer);
      }
    }
  }

  /** Scrapes, and sees to it that counts are those of the infinite buckets; the largest number of finished requests. */
  private static long largestCount(MetricsRegistry registry, AtomicInteger scrapes) {
    long largest = 0;
    for (int scrape = 0; scrape < 300; scrape++) {
      scrapes.set(scrape);
      Map<String, Double> infinite = new HashMap<>();
      Map<String, Double> counts = new HashMap<>();
      for (String line : registry.exposition(ExpositionFormat.TEXT_0_0_4).lines().toList()) {
        String name = line.substring(0, Math.max(0, line.indexOf('{')));
        double value = line.startsWith("#") ? 0 : Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
        if (line.contains("le=\"+Inf\"")) {
          infinite.put(name.replace("_bucket", ""), value);
        } else if (name.endsWith("_count")) {
          counts.put(name.replace("_count", ""), value);
        }
      }
      assertThat(counts).hasSize(18).isEqualTo(infinite);
      largest = Math.max(largest, counts.getOrDefault("vllm:e2e_request_latency_seconds", 0.0).longValue());
    }
    return largest;
  }

  @Test
  void userCase37ClosingAnEngineLeavesTheOthersUntouched() {
    MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());
    List<String> open = new ArrayList<>();
    try (FakeEngine first = new FakeEngine(0, registry, o -> { })) {
      try (FakeEngine second = new FakeEngine(1, registry, o -> { })) {
        first.snapshot(3, 0, 0, 1, 1);
        second.snapshot(4, 0, 0, 1, 1);
        open.addAll(running(registry));
      }
      assertThat(open).containsExactly(
          "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0",
          "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0");
      assertThat(running(registry)).containsExactly(open.get(0));
    }
    assertThat(registry.exposition(ExpositionFormat.TEXT_0_0_4)).isEmpty();
  }

  private static List<String> running(MetricsRegistry registry) {
    return registry.exposition(ExpositionFormat.TEXT_0_0_4).lines()
        .filter(l -> l.startsWith("vllm:num_requests_running{")).toList();
  }

  private static List<String> adapterSeries(FakeEngine engine) {
    return engine.source().exposition(ExpositionFormat.TEXT_0_0_4).lines()
        .filter(l -> l.startsWith("vllm:lora_requests_info{")).map(l -> l.substring(0, l.lastIndexOf(' '))).toList();
  }
}
