package dev.tacho.metrics.prometheus;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.FakeEngine;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.stats.OffloadSeries;
import dev.tacho.metrics.stats.OffloadStats;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Families of the offloading connectors: which are there, when their children appear, and what moves them. */
class OffloadFamiliesTest {
  private static final String LABELS = "{engine=\"0\",model_name=\"m\"";

  private final MetricsRegistry registry = MetricsRegistry.create(MetricsCollector.onDemand());

  private FakeEngine offloading(int threshold, String... tiers) {
    return new FakeEngine(0, registry, o -> o.families(
        f -> f.offload(OffloadDescription.toHost(100, 4, 1 << 20, 6400, threshold, List.of(tiers)))));
  }

  private String text(FakeEngine engine) {
    return engine.source().exposition(ExpositionFormat.TEXT_0_0_4);
  }

  @Test
  void childrenAppearWithTheirFirstReportAndTheMirrorsFromTheStart() {
    try (FakeEngine engine = offloading(0)) {
      assertThat(text(engine)).contains("# TYPE vllm:kv_offload_load_bytes_total counter\n")
          .doesNotContain("vllm:kv_offload_load_bytes_total{")
          .doesNotContain("vllm:kv_offload_config_info{")
          .contains("vllm:kv_offload_total_bytes_total" + LABELS + ",transfer_type=\"CPU_to_GPU\"} 0.0\n")
          .contains("vllm:kv_offload_size_count" + LABELS + ",transfer_type=\"GPU_to_CPU\"} 0.0\n");
      engine.source().connectors().loaded(6_000_000, 0.5);
      engine.source().connectors().loaded(4_000_000, 0.25);
      engine.source().connectors().offload(OffloadSeries.CPU_CACHE_USAGE, 0, 0);
      engine.snapshot(0, 0, 0, 1, 1);
      assertThat(text(engine)).contains("vllm:kv_offload_load_bytes_total" + LABELS + "} 1e+07\n")
          .contains("vllm:kv_offload_load_time_total" + LABELS + "} 0.75\n")
          .contains("vllm:kv_offload_load_size_bucket{engine=\"0\",le=\"5e+06\",model_name=\"m\"} 1.0\n")
          .contains("vllm:kv_offload_load_size_bucket{engine=\"0\",le=\"1e+07\",model_name=\"m\"} 2.0\n")
          .contains("vllm:kv_offload_total_bytes_total" + LABELS + ",transfer_type=\"CPU_to_GPU\"} 1e+07\n")
          .contains("vllm:kv_offload_size_sum" + LABELS + ",transfer_type=\"CPU_to_GPU\"} 1e+07\n")
          .contains("vllm:kv_offload_size_sum" + LABELS + ",transfer_type=\"GPU_to_CPU\"} 0.0\n")
          .contains("vllm:kv_offload_cpu_cache_usage_perc" + LABELS + "} 0.0\n")
          .doesNotContain("vllm:kv_offload_store_bytes_total{")
          .contains("vllm:kv_offload_config_info{cpu_blocks_per_chunk=\"4\",cpu_kv_cache_size_bytes=\"1048576\","
              + "cpu_kv_cache_size_tokens=\"6400\",cpu_num_chunks=\"100\",engine=\"0\",model_name=\"m\"} 1.0\n");
      engine.snapshot(0, 0, 0, 1, 1);
      assertThat(engine.value("vllm:kv_offload_load_bytes_total")).as("counted once").isEqualTo(1e7);
    }
  }

  @Test
  void tiersAndThresholdOpenTheirFamilies() {
    try (FakeEngine engine = offloading(1)) {
      assertThat(text(engine)).doesNotContain("kv_offload_tiering").doesNotContain("stores_skipped");
    }
    try (FakeEngine engine = offloading(2, "disk", "far")) {
      assertThat(text(engine)).contains("# TYPE vllm:kv_offload_stores_skipped_total counter");
      engine.source().connectors().offload(OffloadSeries.TIER_PROMOTION_LATENCY, 1 * 2 + 1, 0.3);
      engine.source().connectors().offload(OffloadSeries.TIER_READ_BYTES, 0, 12);
      engine.source().connectors().offload(OffloadSeries.TIER_READ_BYTES, 2, 99);
      engine.snapshot(0, 0, 0, 1, 1);
      assertThat(text(engine).lines().filter(l -> l.startsWith("vllm:kv_offload_tiering") && !l.contains("_bucket")))
          .containsExactly(
              "vllm:kv_offload_tiering_read_bytes_total" + LABELS + ",tier=\"disk\"} 12.0",
              "vllm:kv_offload_tiering_promotion_latency_seconds_count" + LABELS
                  + ",result=\"failure\",tier=\"far\"} 1.0",
              "vllm:kv_offload_tiering_promotion_latency_seconds_sum" + LABELS
                  + ",result=\"failure\",tier=\"far\"} 0.3");
      assertThat(text(engine).lines().filter(l -> l.startsWith("vllm:kv_offload_config_info{"))).hasSize(2);
      assertThat(engine.source().snapshot().named("vllm:kv_offload_tiering_read_bytes")).hasSize(1);
    }
  }

  @Test
  void theSimpleConnectorHasItsOwn() {
    try (FakeEngine engine = new FakeEngine(0, registry,
        o -> o.families(f -> f.offload(OffloadDescription.simple("memcpy", true, false, 64))))) {
      engine.source().connectors().offload(OffloadSeries.SIMPLE_SAVE_OUTCOMES, 1, 3);
      engine.snapshot(0, 0, 0, 1, 1);
      assertThat(text(engine)).doesNotContain("vllm:kv_offload_")
          .contains("vllm:simple_kv_offload_save_outcomes_total" + LABELS + ",outcome=\"dropped_cpu_full\"} 3.0\n")
          .contains("vllm:simple_kv_offload_info{backend=\"memcpy\",capacity_blocks=\"64\",engine=\"0\","
              + "lazy_offload=\"False\",model_name=\"m\",page_cache=\"True\"} 1.0\n");
    }
  }

  @Test
  void withoutStatisticsReportsAreForgotten() {
    try (FakeEngine engine = new FakeEngine(0, registry, o -> o.logStats(false).families(
        f -> f.offload(OffloadDescription.toHost(1, 1, 1, 1, 0, List.of()))))) {
      engine.source().connectors().loaded(1, 1);
      assertThat(text(engine)).doesNotContain("vllm:");
    }
  }

  @Test
  void aReportThatIsNoNumberIsRefused() {
    OffloadStats stats = new OffloadStats();
    assertThatThrownBy(() -> stats.report(OffloadSeries.LOAD_BYTES, 0, -1)).hasMessageContaining("LOAD_BYTES");
    assertThatThrownBy(() -> stats.report(OffloadSeries.SIZE, -1, 1)).hasMessageContaining("child -1");
    assertThatThrownBy(() -> stats.report(OffloadSeries.SIZE, 0, Double.NaN)).isInstanceOf(
        IllegalArgumentException.class);
    assertThatThrownBy(() -> OffloadDescription.toHost(1, 1, 1, 1, 0, List.of("a", "a"))).hasMessageContaining("twice");
  }
}
