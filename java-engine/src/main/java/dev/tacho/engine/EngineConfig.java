package dev.tacho.engine;

import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * How an engine is set up. Immutable; made by a builder that checks every value and names the option in the error.
 * Accessors, builder methods, command line and environment share the names of {@link EngineOption}.
 */
public final class EngineConfig {
  /** Variables that Kubernetes sets for the services of a namespace. */
  private static final Pattern SERVICE_LINK = Pattern.compile("TACHO(_.*)?_(SERVICE_(HOST|PORT.*)|PORT(_\\d+_.*)?)");

  private static final Duration MAX_LOG_STATS_INTERVAL = Duration.ofDays(366);

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

  /** Type of keys and values in the KV cache: {@code auto}, {@code float32}, {@code float16} or {@code bfloat16}. */
  public String kvCacheDtype() {
    return required(EngineOption.KV_CACHE_DTYPE, String.class);
  }

  /** True if prompts that begin alike share their beginning. */
  public boolean enablePrefixCaching() {
    return required(EngineOption.ENABLE_PREFIX_CACHING, Boolean.class);
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

  /** Time between two lines of statistics in the log. */
  public Duration logStatsInterval() {
    return required(EngineOption.LOG_STATS_INTERVAL, Duration.class);
  }

  /** Tokens of a KV block. */
  public int blockSize() {
    return Integer.parseInt(required(EngineOption.BLOCK_SIZE, String.class));
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
     * @throws ConfigurationException if a variable with the prefix belongs to no option; names the nearest
     */
    public Builder environment(Map<String, String> environment, Set<String> others) {
      for (Map.Entry<String, String> variable : environment.entrySet()) {
        String name = variable.getKey();
        if (!name.startsWith("TACHO_") || others.contains(name) || SERVICE_LINK.matcher(name).matches()) {
          continue;
        }
        String key = name.substring("TACHO_".length()).toLowerCase(Locale.ROOT);
        EngineOption option = EngineOption.find(key);
        if (option == null) {
          throw new ConfigurationException(
              key.replace('_', '-'),
              "there is no such option, but the environment sets "
                  + name
                  + "; the nearest variable is "
                  + EngineOption.nearest(key).environmentName());
        }
        if (!values.containsKey(option)) {
          set(option, variable.getValue());
        }
      }
      return this;
    }

    private Builder put(EngineOption option, Object value) {
      values.put(option, value);
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

    /** See {@link EngineConfig#logStatsInterval()}. */
    public Builder logStatsInterval(Duration interval) {
      return put(EngineOption.LOG_STATS_INTERVAL, interval);
    }

    /**
     * The checked configuration.
     *
     * @throws ConfigurationException if an option is missing, out of range, or does not go with another
     */
    public EngineConfig build() {
      EngineConfig config = new EngineConfig(new EnumMap<>(values));
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
      if (config.maxModelLen().isPresent()) {
        check(config.maxModelLen().getAsInt() >= 2, EngineOption.MAX_MODEL_LEN, "must be at least 2 tokens");
      }
      check(config.threads() <= 1024, EngineOption.THREADS, "at most 1024, is " + config.threads());
      check(
          config.logStatsInterval().isPositive(),
          EngineOption.LOG_STATS_INTERVAL,
          "must be above 0, is " + config.logStatsInterval());
      check(
          config.logStatsInterval().compareTo(MAX_LOG_STATS_INTERVAL) <= 0,
          EngineOption.LOG_STATS_INTERVAL,
          "at most " + MAX_LOG_STATS_INTERVAL.toHours() + "h, is " + config.logStatsInterval());
      return config;
    }

    private static void check(boolean holds, EngineOption option, String problem) {
      if (!holds) {
        throw new ConfigurationException(option.optionName(), problem);
      }
    }
  }
}
