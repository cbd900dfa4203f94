package dev.tacho.engine;

import dev.tacho.engine.kv.PrefixHashAlgorithm;
import dev.tacho.engine.scheduler.SchedulerConfig;
import dev.tacho.engine.scheduler.SchedulingPolicy;
import dev.tacho.metrics.perf.DevicePeaks;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * How an engine is set up. Immutable; made by a builder that checks every value and names the option in the error.
 * Accessors, builder methods, command line and environment share the names of {@link EngineOption}.
 */
public final class EngineConfig {
  private final EnumMap<EngineOption, Object> values;

  private EngineConfig(EnumMap<EngineOption, Object> values) {
    this.values = values;
  }

  /** A builder with the defaults. */
  public static Builder builder() {
    return new Builder(new EnumMap<>(EngineOption.class));
  }

  /** A builder that starts from these values. */
  public Builder toBuilder() {
    return new Builder(new EnumMap<>(values));
  }

  /** The model file. */
  public Path model() {
    return required(EngineOption.MODEL, Path.class);
  }

  /** The model's name in requests and metrics. */
  public String servedModelName() {
    String name = value(EngineOption.SERVED_MODEL_NAME, String.class);
    if (name != null) {
      return name;
    }
    String file = String.valueOf(model().getFileName());
    return file.endsWith(".gguf") ? file.substring(0, file.length() - ".gguf".length()) : file;
  }

  /** Tokens of prompt and output together at most; empty for what the model was trained for. */
  public OptionalInt maxModelLen() {
    return optionalCount(EngineOption.MAX_MODEL_LEN);
  }

  /**
   * Sequences that run at the same time at most. The default gives way to a smaller {@link #maxNumBatchedTokens()}, as
   * each running sequence gets its token in a step.
   */
  public int maxNumSeqs() {
    int sequences = required(EngineOption.MAX_NUM_SEQS, Integer.class);
    return values.containsKey(EngineOption.MAX_NUM_SEQS)
        ? sequences
        : Math.clamp(maxNumBatchedTokens(), 1, sequences);
  }

  /** Tokens that one step computes at most. */
  public int maxNumBatchedTokens() {
    return required(EngineOption.MAX_NUM_BATCHED_TOKENS, Integer.class);
  }

  /** Tokens of one prompt that one step computes at most while other requests are there; 0 for no such limit. */
  public int longPrefillTokenThreshold() {
    return required(EngineOption.LONG_PREFILL_TOKEN_THRESHOLD, Integer.class);
  }

  /** True if a prompt may be computed in pieces. */
  public boolean enableChunkedPrefill() {
    return required(EngineOption.ENABLE_CHUNKED_PREFILL, Boolean.class);
  }

  /** Who is admitted first: {@code fcfs} or {@code priority}. */
  public String schedulingPolicy() {
    return required(EngineOption.SCHEDULING_POLICY, String.class);
  }

  /** True if the next step is planned and launched while one computes; never with {@link #speculativeConfig()}. */
  public boolean asyncScheduling() {
    return required(EngineOption.ASYNC_SCHEDULING, Boolean.class) && speculativeConfig().isEmpty();
  }

  /** How tokens are guessed; empty if they are not. */
  public Optional<SpeculativeConfig> speculativeConfig() {
    return Optional.ofNullable(value(EngineOption.SPECULATIVE_CONFIG, SpeculativeConfig.class));
  }

  /** Tokens that are guessed at a time; 0 if none are. */
  int numSpeculativeTokens() {
    return speculativeConfig().map(SpeculativeConfig::numSpeculativeTokens).orElse(0);
  }

  /** What an answer says of its drafts: {@code none}, {@code summary} or {@code detailed}. */
  public String perRequestSpecDecodeMetrics() {
    return required(EngineOption.PER_REQUEST_SPEC_DECODE_METRICS, String.class);
  }

  /** True if requests with a NaN in their logits are counted. */
  public boolean computeNansInLogits() {
    return required(EngineOption.COMPUTE_NANS_IN_LOGITS, Boolean.class);
  }

  /** Sequences that may be unfinished before requests are refused; empty for any number. */
  public OptionalInt maxNumQueuedReqs() {
    return optionalCount(EngineOption.MAX_NUM_QUEUED_REQS);
  }

  /** Prompt tokens without a first output from which on requests are refused; empty for any number. */
  public OptionalInt maxNumQueuedTokens() {
    return optionalCount(EngineOption.MAX_NUM_QUEUED_TOKENS);
  }

  /** What computes: {@code auto}, {@code cuda}, {@code native}, {@code vector} or {@code scalar}. */
  public String kernels() {
    return required(EngineOption.KERNELS, String.class);
  }

  /** Worker threads; 0 for one for each CPU. */
  public int threads() {
    return required(EngineOption.THREADS, Integer.class);
  }

  /** Memory for the KV cache; empty to let the engine choose. */
  public Optional<MemorySize> kvCacheMemory() {
    return Optional.ofNullable(value(EngineOption.KV_CACHE_MEMORY, MemorySize.class));
  }

  /** Blocks of the KV cache, the null block included, instead of what {@link #kvCacheMemory()} gives. */
  public OptionalInt numGpuBlocksOverride() {
    return optionalCount(EngineOption.NUM_GPU_BLOCKS_OVERRIDE);
  }

  /**
   * Type of keys and values in the KV cache: {@code auto}, {@code float32}, {@code float16}, {@code bfloat16} or {@code
   * q8_0}.
   */
  public String kvCacheDtype() {
    return required(EngineOption.KV_CACHE_DTYPE, String.class);
  }

  /** True if prompts that begin alike share their beginning. */
  public boolean enablePrefixCaching() {
    return required(EngineOption.ENABLE_PREFIX_CACHING, Boolean.class);
  }

  /** Hash of the prefix cache's blocks: {@code sha256} or {@code xxhash}. */
  public String prefixCachingHashAlgo() {
    return required(EngineOption.PREFIX_CACHING_HASH_ALGO, String.class);
  }

  /** Start of the random numbers of requests that bring no seed. */
  public long seed() {
    return required(EngineOption.SEED, Long.class);
  }

  /** True if no statistics are recorded. */
  public boolean disableLogStats() {
    return required(EngineOption.DISABLE_LOG_STATS, Boolean.class);
  }

  /** True if the floating point operations and bytes of each step are estimated. */
  public boolean enableMfuMetrics() {
    return required(EngineOption.ENABLE_MFU_METRICS, Boolean.class);
  }

  /** What an engine's threads can do at their peak, if that is given and not to be measured. */
  public Optional<DevicePeaks> devicePeaks() {
    Double flops = value(EngineOption.PEAK_FLOPS, Double.class);
    Double bandwidth = value(EngineOption.PEAK_BANDWIDTH, Double.class);
    return flops == null || bandwidth == null ? Optional.empty() : Optional.of(new DevicePeaks(flops, bandwidth));
  }

  /** Where packed weights are kept for the next start; empty if they are not. */
  public Optional<Path> repackCache() {
    return Optional.ofNullable(value(EngineOption.REPACK_CACHE, Path.class));
  }

  /** Where other processes of this user find metrics and events; empty if they do not. */
  public Optional<Path> metricsDirectory() {
    return Optional.ofNullable(value(EngineOption.METRICS_DIRECTORY, Path.class));
  }

  /** Time between two lines of statistics in the log. */
  public Duration logStatsInterval() {
    return required(EngineOption.LOG_STATS_INTERVAL, Duration.class);
  }

  /** Engines side by side, which share the weights. */
  public int dataParallelSize() {
    return required(EngineOption.DATA_PARALLEL_SIZE, Integer.class);
  }

  /** True if HTTP clients may put the engine to sleep and wake it. */
  public boolean enableSleepMode() {
    return required(EngineOption.ENABLE_SLEEP_MODE, Boolean.class);
  }

  /** True if there is one line of statistics in the log for all engines. */
  public boolean aggregateEngineLogging() {
    return required(EngineOption.AGGREGATE_ENGINE_LOGGING, Boolean.class);
  }

  /** True if each step is logged. */
  public boolean enableLoggingIterationDetails() {
    return required(EngineOption.ENABLE_LOGGING_ITERATION_DETAILS, Boolean.class);
  }

  /** True if a sample of the KV blocks is followed. */
  public boolean kvCacheMetrics() {
    return required(EngineOption.KV_CACHE_METRICS, Boolean.class);
  }

  /** Share of the KV blocks that {@link #kvCacheMetrics()} follows, in (0, 1]. */
  public double kvCacheMetricsSample() {
    return required(EngineOption.KV_CACHE_METRICS_SAMPLE, Double.class);
  }

  /** True if the use of CUDA graphs is logged. */
  public boolean cudagraphMetrics() {
    return required(EngineOption.CUDAGRAPH_METRICS, Boolean.class);
  }

  /** Bounds of histogram buckets in place of the usual, by family. */
  public Map<String, List<Object>> customHistogramBuckets() {
    HistogramBuckets buckets = value(EngineOption.CUSTOM_HISTOGRAM_BUCKETS, HistogramBuckets.class);
    return buckets == null ? Map.of() : buckets.bounds();
  }

  /** The release of vLLM whose hidden metrics are shown; empty for none. */
  public Optional<String> showHiddenMetricsForVersion() {
    return Optional.ofNullable(value(EngineOption.SHOW_HIDDEN_METRICS_FOR_VERSION, String.class));
  }

  /** After what time in the queue the log says why; 0 for never. */
  public Duration logWaitingAfter() {
    return required(EngineOption.LOG_WAITING_AFTER, Duration.class);
  }

  /** Tokens of a KV block. */
  public int blockSize() {
    return Integer.parseInt(required(EngineOption.BLOCK_SIZE, String.class));
  }

  /** The scheduler's part of it, for a context of so many tokens. */
  public SchedulerConfig schedulerConfig(int maxModelLen) {
    return SchedulerConfig.builder()
        .maxNumBatchedTokens(maxNumBatchedTokens())
        .maxNumSeqs(maxNumSeqs())
        .maxModelLen(maxModelLen)
        .enableChunkedPrefill(enableChunkedPrefill())
        .longPrefillTokenThreshold(longPrefillTokenThreshold())
        .asyncScheduling(asyncScheduling())
        .numSpeculativeTokens(numSpeculativeTokens())
        .policy(SchedulingPolicy.valueOf(schedulingPolicy().toUpperCase(Locale.ROOT)))
        .prefixHashAlgorithm(
            PrefixHashAlgorithm.valueOf(prefixCachingHashAlgo().toUpperCase(Locale.ROOT)))
        .build();
  }

  /** The value of an option as text, empty if it has none. */
  public String text(EngineOption option) {
    Object value = values.get(option);
    return value == null ? option.defaultText() : value.toString();
  }

  private OptionalInt optionalCount(EngineOption option) {
    Integer value = value(option, Integer.class);
    return value == null ? OptionalInt.empty() : OptionalInt.of(value);
  }

  private <T> T required(EngineOption option, Class<T> type) {
    return Objects.requireNonNull(value(option, type));
  }

  private <T> @Nullable T value(EngineOption option, Class<T> type) {
    Object value = values.get(option);
    if (value == null && !option.defaultText().isEmpty()) {
      value = option.parse(option.defaultText());
    }
    return type.cast(value);
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof EngineConfig config && values.equals(config.values);
  }

  @Override
  public int hashCode() {
    return values.hashCode();
  }

  @Override
  public String toString() {
    return "EngineConfig" + values;
  }

  /** Collects values; {@link #build()} checks that they go together. One thread at a time. */
  public static final class Builder {
    private final EnumMap<EngineOption, Object> values;
    private final Set<EngineOption> fromEnvironment = EnumSet.noneOf(EngineOption.class);

    private Builder(EnumMap<EngineOption, Object> values) {
      this.values = values;
    }

    /** Sets an option by its name on the command line and a text in the option's syntax. */
    public Builder set(String name, String text) {
      return set(EngineOption.of(name), text);
    }

    /** Sets an option from a text in its syntax. */
    public Builder set(EngineOption option, String text) {
      return put(option, option.parse(text));
    }

    /**
     * Sets what {@code TACHO_*} variables say that has not been set before; other variables are left alone, and so are
     * those that Kubernetes sets in every container beside a service called tacho ({@code TACHO_SERVICE_HOST} and the
     * like).
     *
     * @param environment e.g. {@link System#getenv()}
     * @param others further names with that prefix that somebody else reads
     * @throws ConfigurationException if a variable with the prefix belongs to no option, or has no value of it; names
     *     the nearest, or the variable
     */
    public Builder environment(Map<String, String> environment, Set<String> others) {
      EnvironmentOptions.find(environment, others)
          .forEach((option, text) -> {
            if (!values.containsKey(option)) {
              values.put(option, EnvironmentOptions.naming(EnumSet.of(option), () -> option.parse(text)));
              fromEnvironment.add(option);
            }
          });
      return this;
    }

    private Builder put(EngineOption option, Object value) {
      values.put(option, value);
      fromEnvironment.remove(option);
      return this;
    }

    /** See {@link EngineConfig#model()}. */
    public Builder model(Path file) {
      return put(EngineOption.MODEL, file);
    }

    /** See {@link EngineConfig#servedModelName()}. */
    public Builder servedModelName(String name) {
      return put(EngineOption.SERVED_MODEL_NAME, name);
    }

    /** See {@link EngineConfig#maxModelLen()}. */
    public Builder maxModelLen(int tokens) {
      return put(EngineOption.MAX_MODEL_LEN, tokens);
    }

    /** See {@link EngineConfig#maxNumSeqs()}. */
    public Builder maxNumSeqs(int sequences) {
      return put(EngineOption.MAX_NUM_SEQS, sequences);
    }

    /** See {@link EngineConfig#maxNumBatchedTokens()}. */
    public Builder maxNumBatchedTokens(int tokens) {
      return put(EngineOption.MAX_NUM_BATCHED_TOKENS, tokens);
    }

    /** See {@link EngineConfig#longPrefillTokenThreshold()}. */
    public Builder longPrefillTokenThreshold(int tokens) {
      return put(EngineOption.LONG_PREFILL_TOKEN_THRESHOLD, tokens);
    }

    /** See {@link EngineConfig#enableChunkedPrefill()}. */
    public Builder enableChunkedPrefill(boolean enable) {
      return put(EngineOption.ENABLE_CHUNKED_PREFILL, enable);
    }

    /** See {@link EngineConfig#schedulingPolicy()}. */
    public Builder schedulingPolicy(String word) {
      return set(EngineOption.SCHEDULING_POLICY, word);
    }

    /** See {@link EngineConfig#asyncScheduling()}. */
    public Builder asyncScheduling(boolean enable) {
      return put(EngineOption.ASYNC_SCHEDULING, enable);
    }

    /** See {@link EngineConfig#speculativeConfig()}. */
    public Builder speculativeConfig(SpeculativeConfig speculation) {
      return put(EngineOption.SPECULATIVE_CONFIG, speculation);
    }

    /** See {@link EngineConfig#perRequestSpecDecodeMetrics()}. */
    public Builder perRequestSpecDecodeMetrics(String word) {
      return set(EngineOption.PER_REQUEST_SPEC_DECODE_METRICS, word);
    }

    /** See {@link EngineConfig#computeNansInLogits()}. */
    public Builder computeNansInLogits(boolean enable) {
      return put(EngineOption.COMPUTE_NANS_IN_LOGITS, enable);
    }

    /** See {@link EngineConfig#maxNumQueuedReqs()}. */
    public Builder maxNumQueuedReqs(int sequences) {
      return put(EngineOption.MAX_NUM_QUEUED_REQS, sequences);
    }

    /** See {@link EngineConfig#maxNumQueuedTokens()}. */
    public Builder maxNumQueuedTokens(int tokens) {
      return put(EngineOption.MAX_NUM_QUEUED_TOKENS, tokens);
    }

    /** See {@link EngineConfig#kernels()}. */
    public Builder kernels(String word) {
      return set(EngineOption.KERNELS, word);
    }

    /** See {@link EngineConfig#threads()}. */
    public Builder threads(int count) {
      return put(EngineOption.THREADS, count);
    }

    /** See {@link EngineConfig#kvCacheMemory()}. */
    public Builder kvCacheMemory(MemorySize size) {
      return put(EngineOption.KV_CACHE_MEMORY, size);
    }

    /** See {@link EngineConfig#numGpuBlocksOverride()}. */
    public Builder numGpuBlocksOverride(int blocks) {
      return put(EngineOption.NUM_GPU_BLOCKS_OVERRIDE, blocks);
    }

    /** See {@link EngineConfig#kvCacheDtype()}. */
    public Builder kvCacheDtype(String word) {
      return set(EngineOption.KV_CACHE_DTYPE, word);
    }

    /** See {@link EngineConfig#enablePrefixCaching()}. */
    public Builder enablePrefixCaching(boolean enable) {
      return put(EngineOption.ENABLE_PREFIX_CACHING, enable);
    }

    /** See {@link EngineConfig#prefixCachingHashAlgo()}. */
    public Builder prefixCachingHashAlgo(String word) {
      return set(EngineOption.PREFIX_CACHING_HASH_ALGO, word);
    }

    /** See {@link EngineConfig#seed()}. */
    public Builder seed(long value) {
      return put(EngineOption.SEED, value);
    }

    /** See {@link EngineConfig#disableLogStats()}. */
    public Builder disableLogStats(boolean disable) {
      return put(EngineOption.DISABLE_LOG_STATS, disable);
    }

    /** See {@link EngineConfig#enableMfuMetrics()}. */
    public Builder enableMfuMetrics(boolean enable) {
      return put(EngineOption.ENABLE_MFU_METRICS, enable);
    }

    /** See {@link EngineConfig#devicePeaks()}. */
    public Builder devicePeaks(DevicePeaks peaks) {
      return put(EngineOption.PEAK_FLOPS, peaks.flopsPerSecond())
          .put(EngineOption.PEAK_BANDWIDTH, peaks.bytesPerSecond());
    }

    /** See {@link EngineConfig#repackCache()}. */
    public Builder repackCache(Path directory) {
      return put(EngineOption.REPACK_CACHE, directory);
    }

    /** See {@link EngineConfig#metricsDirectory()}. */
    public Builder metricsDirectory(Path directory) {
      return put(EngineOption.METRICS_DIRECTORY, directory);
    }

    /** See {@link EngineConfig#logWaitingAfter()}. */
    public Builder logWaitingAfter(Duration time) {
      return put(EngineOption.LOG_WAITING_AFTER, time);
    }

    /** See {@link EngineConfig#logStatsInterval()}. */
    public Builder logStatsInterval(Duration interval) {
      return put(EngineOption.LOG_STATS_INTERVAL, interval);
    }

    /** See {@link EngineConfig#dataParallelSize()}. */
    public Builder dataParallelSize(int engines) {
      return put(EngineOption.DATA_PARALLEL_SIZE, engines);
    }

    /** See {@link EngineConfig#enableSleepMode()}. */
    public Builder enableSleepMode(boolean enable) {
      return put(EngineOption.ENABLE_SLEEP_MODE, enable);
    }

    /** See {@link EngineConfig#aggregateEngineLogging()}. */
    public Builder aggregateEngineLogging(boolean aggregate) {
      return put(EngineOption.AGGREGATE_ENGINE_LOGGING, aggregate);
    }

    /** See {@link EngineConfig#enableLoggingIterationDetails()}. */
    public Builder enableLoggingIterationDetails(boolean enable) {
      return put(EngineOption.ENABLE_LOGGING_ITERATION_DETAILS, enable);
    }

    /** See {@link EngineConfig#kvCacheMetrics()}. */
    public Builder kvCacheMetrics(boolean enable) {
      return put(EngineOption.KV_CACHE_METRICS, enable);
    }

    /** See {@link EngineConfig#kvCacheMetricsSample()}. */
    public Builder kvCacheMetricsSample(double share) {
      return put(EngineOption.KV_CACHE_METRICS_SAMPLE, share);
    }

    /** See {@link EngineConfig#customHistogramBuckets()}. */
    public Builder customHistogramBuckets(String json) {
      return set(EngineOption.CUSTOM_HISTOGRAM_BUCKETS, json);
    }

    /** See {@link EngineConfig#showHiddenMetricsForVersion()}. */
    public Builder showHiddenMetricsForVersion(String version) {
      return put(EngineOption.SHOW_HIDDEN_METRICS_FOR_VERSION, version);
    }

    /**
     * The checked configuration.
     *
     * @throws ConfigurationException if an option is missing, out of range, or does not go with another
     */
    public EngineConfig build() {
      EngineConfig config = new EngineConfig(new EnumMap<>(values));
      return EnvironmentOptions.naming(
          fromEnvironment,
          () -> {
            ConfigChecks.check(config, values);
            return config;
          });
    }
  }
}
