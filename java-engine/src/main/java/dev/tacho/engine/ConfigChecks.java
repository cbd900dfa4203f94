package dev.tacho.engine;

import dev.tacho.metrics.prometheus.HiddenMetrics;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Whether the values of a configuration are in their ranges and go together. */
final class ConfigChecks {
  private static final Duration MAX_LOG_TIME = Duration.ofDays(366);
  private static final int MAX_THREADS = 1024;
  private static final int MAX_DATA_PARALLEL_SIZE = 64;

  private ConfigChecks() {}

  /**
   * Checks.
   *
   * @param config what is checked
   * @param values the values that were set
   * @throws ConfigurationException if an option is missing, out of range, or does not go with another
   */
  static void check(EngineConfig config, Map<EngineOption, Object> values) {
    if (!values.containsKey(EngineOption.MODEL)) {
      throw new ConfigurationException(EngineOption.MODEL.optionName(), "which model file? This option is required");
    }
    for (Map.Entry<EngineOption, Object> value : values.entrySet()) {
      if (value.getValue() instanceof Integer number) {
        check(number >= 0, value.getKey(), "must be at least 0, is " + number);
      }
    }
    check(config.maxNumSeqs() >= 1, EngineOption.MAX_NUM_SEQS, "must be at least 1, is " + config.maxNumSeqs());
    check(
        config.maxNumBatchedTokens() >= config.maxNumSeqs(),
        EngineOption.MAX_NUM_BATCHED_TOKENS,
        "must be at least max-num-seqs, "
            + config.maxNumSeqs()
            + ", so that each running sequence gets its token; is "
            + config.maxNumBatchedTokens());
    check(
        config.numSpeculativeTokens() < config.maxNumBatchedTokens(),
        EngineOption.SPECULATIVE_CONFIG,
        "a sequence and its " + config.numSpeculativeTokens() + " drafts do not fit into max-num-batched-tokens, "
            + config.maxNumBatchedTokens());
    if (config.maxModelLen().isPresent()) {
      check(config.maxModelLen().getAsInt() >= 2, EngineOption.MAX_MODEL_LEN, "must be at least 2 tokens");
    }
    check(
        config.threads() <= MAX_THREADS, EngineOption.THREADS, "at most " + MAX_THREADS + ", is " + config.threads());
    check(
        config.dataParallelSize() >= 1 && config.dataParallelSize() <= MAX_DATA_PARALLEL_SIZE,
        EngineOption.DATA_PARALLEL_SIZE,
        "must be 1 to " + MAX_DATA_PARALLEL_SIZE + ", is " + config.dataParallelSize());
    checkMetrics(config);
    checkPeaks(values);
  }

  private static void checkPeaks(Map<EngineOption, Object> values) {
    for (EngineOption option : List.of(EngineOption.PEAK_FLOPS, EngineOption.PEAK_BANDWIDTH)) {
      if (values.get(option) instanceof Double number) {
        check(number > 0 && number < Double.POSITIVE_INFINITY, option, "must be above 0 and finite, is " + number);
      }
    }
    boolean one = values.containsKey(EngineOption.PEAK_FLOPS);
    check(
        one == values.containsKey(EngineOption.PEAK_BANDWIDTH),
        one ? EngineOption.PEAK_FLOPS : EngineOption.PEAK_BANDWIDTH,
        "peak-flops and peak-bandwidth are given together or not at all");
  }

  private static void checkMetrics(EngineConfig config) {
    check(
        config.logStatsInterval().isPositive(),
        EngineOption.LOG_STATS_INTERVAL,
        "must be above 0, is " + config.logStatsInterval());
    check(
        config.logStatsInterval().compareTo(MAX_LOG_TIME) <= 0,
        EngineOption.LOG_STATS_INTERVAL,
        "at most " + MAX_LOG_TIME.toHours() + "h, is " + config.logStatsInterval());
    check(
        config.logWaitingAfter().compareTo(MAX_LOG_TIME) <= 0,
        EngineOption.LOG_WAITING_AFTER,
        "at most " + MAX_LOG_TIME.toHours() + "h, is " + config.logWaitingAfter());
    check(
        config.kvCacheMetricsSample() > 0 && config.kvCacheMetricsSample() <= 1,
        EngineOption.KV_CACHE_METRICS_SAMPLE,
        "must be above 0 and at most 1, is " + config.kvCacheMetricsSample());
    check(
        !(config.kvCacheMetrics() && config.disableLogStats()),
        EngineOption.KV_CACHE_METRICS,
        "does not go with disable-log-stats: nothing is recorded then");
    check(
        !config.cudagraphMetrics(),
        EngineOption.CUDAGRAPH_METRICS,
        "this build computes without CUDA graphs, so there is nothing to report");
    if (config.showHiddenMetricsForVersion().isPresent()) {
      String version = config.showHiddenMetricsForVersion().get();
      try {
        var _ = HiddenMetrics.check(version);
      } catch (IllegalArgumentException e) {
        throw new ConfigurationException(
            EngineOption.SHOW_HIDDEN_METRICS_FOR_VERSION.optionName(),
            "must be a version such as 0.32, is '" + version + "'");
      }
    }
  }

  private static void check(boolean holds, EngineOption option, String problem) {
    if (!holds) {
      throw new ConfigurationException(option.optionName(), problem);
    }
  }
}
