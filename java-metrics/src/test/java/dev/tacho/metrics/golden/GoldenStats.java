package dev.tacho.metrics.golden;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.tacho.metrics.stats.CacheLookups;
import dev.tacho.metrics.stats.CacheSource;
import dev.tacho.metrics.stats.ConnectorCacheStats;
import dev.tacho.metrics.stats.GraphStat;
import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import dev.tacho.metrics.stats.TransferStats;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Statistics as the computed cases of loggers write them. */
final class GoldenStats {
  private static final ObjectMapper JSON = new ObjectMapper();

  private GoldenStats() {}

  /** A snapshot, or null if the case has none. */
  static @Nullable SchedulerStats scheduler(JsonNode node) {
    if (!node.isObject()) {
      return null;
    }
    SchedulerStats stats = new SchedulerStats();
    stats.queues(node.path("num_running_reqs").asInt(), node.path("num_waiting_reqs").asInt(),
        node.path("num_skipped_waiting_reqs").asInt());
    stats.kvCacheUsage(node.path("kv_cache_usage").asDouble());
    JsonNode fetches = node.path("num_kv_fetch_reqs_by_stage");
    stats.kvFetches(fetches.path("waiting_to_start").asInt(), fetches.path("in_progress").asInt(),
        fetches.path("completed_waiting").asInt());
    lookups(node.path("prefix_cache"), stats.prefixCache());
    connector(node.path("connector_prefix_cache").path("records"), stats.connectorCache());
    JsonNode perf = node.path("perf");
    stats.work().set(perf.path("flops").longValue(), perf.path("read_bytes").longValue(),
        perf.path("write_bytes").longValue());
    if (node.has("spec_drafts")) {
      stats.speculation().reset(node.get("num_spec_tokens").asInt());
      node.get("spec_drafts").forEach(d -> stats.speculation().add(d.get("draft").asInt(), d.get("accepted").asInt()));
    }
    transfers(node.path("kv_connector_stats"), stats.transfers());
    for (JsonNode eviction : node.path("kv_evictions")) {
      stats.residency().add(eviction.get("lifetime_seconds").asDouble(), eviction.get("idle_seconds").asDouble());
      eviction.path("reuse_gaps_seconds").forEach(gap -> stats.residency().addReuseGap(gap.asDouble()));
    }
    List<String> adapters = new ArrayList<>();
    node.path("waiting_lora_adapters").fieldNames().forEachRemaining(adapters::add);
    stats.adapters(adapters);
    stats.details(details(node.path("iteration_details")));
    JsonNode graph = node.path("cudagraph");
    if (graph.isObject()) {
      stats.graph(new GraphStat(graph.get("num_unpadded_tokens").asInt(), graph.get("num_padded_tokens").asInt(),
          graph.get("num_paddings").asInt(), graph.get("runtime_mode").asText()));
    }
    return stats;
  }

  /** A batch of outputs with its sums and its look-ups of the multi-modal cache, or null if a call has neither. */
  static @Nullable IterationStats iteration(JsonNode call) {
    JsonNode node = call.path("iteration_stats");
    JsonNode multiModal = call.path("mm_cache_stats");
    if (!node.isObject() && !multiModal.isObject()) {
      return null;
    }
    IterationStats stats = new IterationStats();
    lookups(multiModal, stats.multiModalCache());
    if (node.isObject()) {
      stats.outputs(1);
    }
    stats.addGenerationTokens(node.path("num_generation_tokens").asLong());
    stats.addPreemptions(node.path("num_preempted_reqs").asLong());
    stats.addCorrupted(node.path("num_corrupted_reqs").asLong());
    JsonNode watermarks = node.path("watermark_counts");
    stats.addWatermarks(watermarks.path(0).asLong(), watermarks.path(1).asLong(), watermarks.path(2).asLong());
    for (JsonNode prefill : node.path("prefills")) {
      stats.promptTokens().add(prefill.get("num_prompt_tokens").asLong(),
          prefill.path("num_local_cached_tokens").asLong(), prefill.path("num_external_cached_tokens").asLong());
    }
    return stats;
  }

  /** Transfers as lists, one element for each of them. */
  static void transfers(JsonNode node, TransferStats stats) {
    JsonNode durations = node.path("transfer_duration");
    for (int i = 0; i < durations.size(); i++) {
      stats.add(durations.get(i).asDouble(), node.get("post_duration").get(i).asDouble(),
          node.get("bytes_transferred").get(i).asLong(), node.get("num_descriptors").get(i).asLong());
    }
    stats.addFailures(node.path("num_failed_transfers").size(), node.path("num_failed_handshakes").size(),
        node.path("num_failed_notifications").size(), node.path("num_kv_expired_reqs").size(),
        node.path("num_notifications_after_expiry").size());
  }

  /** Look-ups of a connector, one a record. */
  static void connector(JsonNode records, ConnectorCacheStats stats) {
    for (JsonNode record : records) {
      Map<CacheSource, Long> bySource = null;
      if (record.path("hits_by_source").isObject()) {
        bySource = new EnumMap<>(CacheSource.class);
        for (Map.Entry<String, JsonNode> source : record.get("hits_by_source").properties()) {
          bySource.put(source(source.getKey()), source.getValue().asLong());
        }
      }
      stats.add(record.get("num_tokens").asLong(), record.get("num_hits").asLong(),
          record.path("preempted").asBoolean(), bySource);
    }
  }

  static CacheSource source(String label) {
    return CacheSource.valueOf(label.toUpperCase(Locale.ROOT));
  }

  /** A JSON object as a configuration reader would hand it over. */
  static Map<String, Object> map(JsonNode node) {
    Map<String, Object> map = new LinkedHashMap<>();
    node.properties().forEach(e -> map.put(e.getKey(), JSON.convertValue(e.getValue(), Object.class)));
    return map;
  }

  private static @Nullable IterationDetails details(JsonNode node) {
    return !node.isObject() ? null : new IterationDetails(node.get("iteration_index").asLong(),
        node.get("num_ctx_requests").asInt(), node.get("num_ctx_tokens").asInt(),
        node.get("num_generation_requests").asInt(), node.get("num_generation_tokens").asInt(),
        node.get("elapsed_ms").asDouble(), node.path("is_dummy").asBoolean(), node.path("num_encoder_inputs").asInt(),
        node.path("num_encoder_output_tokens").asInt());
  }

  /** Sums look-ups; those of requests that had been preempted do not count. */
  private static void lookups(JsonNode cache, CacheLookups to) {
    if (cache.path("reset").asBoolean()) {
      to.markReset();
    }
    for (JsonNode lookup : cache.path("records")) {
      if (!lookup.path("preempted").asBoolean()) {
        to.add(1, lookup.path("num_tokens").asLong() + lookup.path("num_queries").asLong(),
            lookup.get("num_hits").asLong());
      }
    }
  }
}
