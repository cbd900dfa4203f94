package dev.tacho.engine;

import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.logger.AggregatedLoggingStatLogger;
import dev.tacho.metrics.logger.LogOptions;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** From a configuration to how each engine of a group publishes its metrics. */
final class EngineMetricsSetup {
  private static final String DEVICE = "CPU";

  private final EngineConfig config;
  private final LoadedModel model;
  private final MetricsRegistry registry;
  private final List<StatLoggerFactory> plugIns;
  private final @Nullable AggregatedLoggingStatLogger aggregated;

  EngineMetricsSetup(
      EngineConfig config, LoadedModel model, MetricsRegistry registry, List<StatLoggerFactory> plugIns) {
    this.config = config;
    this.model = model;
    this.registry = registry;
    this.plugIns = List.copyOf(plugIns);
    boolean one = config.aggregateEngineLogging() && !config.disableLogStats();
    aggregated =
        one
            ? new AggregatedLoggingStatLogger(
                IntStream.range(0, model.engines().size()).boxed().toList(), LogOptions.of(DEVICE), System.nanoTime())
            : null;
  }

  /** What an engine records beside the usual. */
  EventRecorder.Options recording() {
    return new EventRecorder.Options(
        config.kvCacheMetrics() ? config.kvCacheMetricsSample() : 0,
        config.enableLoggingIterationDetails(),
        config.computeNansInLogits());
  }

  /** How the engine of this rank publishes. */
  EngineMetricsOptions options(int rank, CounterPage counters) {
    EngineParts parts = model.engines().get(rank);
    EngineInfo info = parts.info();
    EngineMetricsOptions.Builder options =
        EngineMetricsOptions.builder(info.modelName(), info.maxModelLen())
            .engineIndex(rank)
            .counters(counters)
            .registry(registry)
            .device(DEVICE)
            .workers(parts.runner().workers())
            .logStats(!config.disableLogStats())
            .logInterval(config.logStatsInterval())
            .kvCacheMetrics(config.kvCacheMetrics())
            .speculativeTokens(config.numSpeculativeTokens())
            .computeNansInLogits(config.computeNansInLogits())
            .customHistogramBuckets(config.customHistogramBuckets())
            .cacheConfig(cacheConfig(info));
    config.metricsDirectory().ifPresent(options::directory);
    if (parts.shape() != null) {
      options.modelShape(parts.shape()).mfuMetrics(config.enableMfuMetrics());
    }
    if (aggregated != null) {
      // The first one's logger writes the line of all.
      options.ownLogLine(false).statLogger(rank == 0 ? aggregated : aggregated.recorder());
    }
    for (StatLoggerFactory factory : plugIns) {
      options.plugIn(factory.create(rank));
    }
    return options.build();
  }

  /** Labels of {@code vllm:cache_config_info}, values as Python shows them. */
  private Map<String, String> cacheConfig(EngineInfo info) {
    Map<String, String> labels = new LinkedHashMap<>();
    labels.put(EngineOption.BLOCK_SIZE.key(), config.text(EngineOption.BLOCK_SIZE));
    labels.put("cache_dtype", config.kvCacheDtype());
    labels.put(EngineOption.ENABLE_PREFIX_CACHING.key(), truth(config.enablePrefixCaching()));
    labels.put(EngineOption.PREFIX_CACHING_HASH_ALGO.key(), config.prefixCachingHashAlgo());
    labels.put(EngineOption.KV_CACHE_METRICS.key(), truth(config.kvCacheMetrics()));
    labels.put(EngineOption.KV_CACHE_METRICS_SAMPLE.key(), config.text(EngineOption.KV_CACHE_METRICS_SAMPLE));
    labels.put("num_gpu_blocks", String.valueOf(info.numKvBlocks()));
    labels.put(EngineOption.NUM_GPU_BLOCKS_OVERRIDE.key(), orNone(config.text(EngineOption.NUM_GPU_BLOCKS_OVERRIDE)));
    labels.put("kv_cache_memory_bytes", String.valueOf(info.kvCache().bytes()));
    return labels;
  }

  private static String truth(boolean value) {
    return value ? "True" : "False";
  }

  private static String orNone(String text) {
    return text.isEmpty() ? "None" : text;
  }
}
