package dev.tacho.metrics;

import dev.tacho.metrics.logger.LogOptions;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.prometheus.CustomBuckets;
import dev.tacho.metrics.prometheus.EngineFamilies;
import dev.tacho.metrics.prometheus.MetricFamily;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** How an engine publishes its metrics. Immutable; made by {@link #builder}. */
public final class EngineMetricsOptions {
  /** The longest time between two log lines: 10,000 days, well inside what a count of nanoseconds holds. */
  public static final Duration MAX_LOG_INTERVAL = Duration.ofDays(10_000);

  /** More would make more series than a dashboard can show. */
  private static final int MAX_WORKERS = 1024;
  private static final Pattern LABEL_NAME = Pattern.compile("[a-zA-Z_][a-zA-Z0-9_]*");

  private final String modelName;
  private final int engineIndex;
  private final int maxModelLen;
  private final boolean logStats;
  private final boolean mfuMetrics;
  private final @Nullable ModelShape modelShape;
  private final Duration logInterval;
  private final String device;
  private final CounterPage counters;
  private final MetricsRegistry registry;
  private final List<StatLogger> statLoggers;
  private final List<StatLogger> plugIns;
  private final Map<String, String> cacheConfig;
  private final CustomBuckets customHistogramBuckets;
  private final int speculativeTokens;
  private final int maxAdapters;
  private final boolean nansInLogits;
  private final boolean kvCacheMetrics;
  private final boolean ownLogLine;
  private final int workers;
  private final boolean mfuDetails;
  private final boolean discoverPlugIns;
  private final Consumer<EngineFamilies.Builder> moreFamilies;
  private final @Nullable Path directory;
  private final @Nullable String graphMode;
  private final List<Integer> captureSizes;

  private EngineMetricsOptions(Builder builder) {
    this.modelName = builder.modelName;
    this.engineIndex = builder.engineIndex;
    this.maxModelLen = builder.maxModelLen;
    this.logStats = builder.logStats;
    this.mfuMetrics = builder.mfuMetrics;
    this.modelShape = builder.modelShape;
    this.logInterval = builder.logInterval;
    this.device = builder.device;
    this.counters = builder.counters != null ? builder.counters : new CounterPage();
    this.registry = builder.registry != null ? builder.registry : MetricsRegistry.create();
    this.statLoggers = List.copyOf(builder.statLoggers);
    this.plugIns = List.copyOf(builder.plugIns);
    this.customHistogramBuckets = builder.customHistogramBuckets;
    this.speculativeTokens = builder.speculativeTokens;
    this.maxAdapters = builder.maxAdapters;
    this.nansInLogits = builder.nansInLogits;
    this.kvCacheMetrics = builder.kvCacheMetrics;
    this.ownLogLine = builder.ownLogLine;
    this.workers = builder.workers;
    this.mfuDetails = builder.mfuDetails;
    this.discoverPlugIns = builder.discoverPlugIns;
    this.moreFamilies = builder.moreFamilies;
    this.directory = builder.directory;
    this.graphMode = builder.graphMode;
    this.captureSizes = builder.captureSizes;
    this.cacheConfig = Collections.unmodifiableMap(new LinkedHashMap<>(builder.cacheConfig));
  }

  /**
   * Starts a description.
   *
   * @param modelName value of the label {@code model_name}
   * @param maxModelLen longest context in tokens; bounds the token histograms' buckets
   */
  public static Builder builder(String modelName, int maxModelLen) {
    return new Builder(modelName, maxModelLen);
  }

  /** Value of the label {@code model_name}. */
  public String modelName() {
    return modelName;
  }

  /** Value of the label {@code engine}. */
  public int engineIndex() {
    return engineIndex;
  }

  /** Longest context in tokens. */
  public int maxModelLen() {
    return maxModelLen;
  }

  /** False if nothing is recorded (disable-log-stats). */
  public boolean logStats() {
    return logStats;
  }

  /** True if each step's work is estimated (enable-mfu-metrics). */
  public boolean mfuMetrics() {
    return mfuMetrics;
  }

  /** The model for that estimate, or null if it has none. */
  public @Nullable ModelShape modelShape() {
    return modelShape;
  }

  /** Time between two log lines; zero if there are none. */
  public Duration logInterval() {
    return logInterval;
  }

  /** True if the engine has a log line of its own. */
  boolean ownLogLine() {
    return ownLogLine && logStats && logInterval.isPositive();
  }

  /** Kind of the device, as the log line names it, such as CPU. */
  public String device() {
    return device;
  }

  /** The engine's counters. */
  public CounterPage counters() {
    return counters;
  }

  /** Where the metrics are published. */
  public MetricsRegistry registry() {
    return registry;
  }

  /** Loggers of the caller, each for this engine alone. */
  public List<StatLogger> statLoggers() {
    return statLoggers;
  }

  /** Loggers of others, each for a thread of its own. */
  public List<StatLogger> plugIns() {
    return plugIns;
  }

  /** True if loggers are looked for with the service loader as well. */
  public boolean discoverPlugIns() {
    return discoverPlugIns;
  }

  /** Workers that the engine tells apart, 0 if it does not. */
  public int workers() {
    return workers;
  }

  /** True if the parts of the estimate are kept for the debug log. */
  public boolean mfuDetails() {
    return mfuDetails;
  }

  /** Labels of {@code vllm:cache_config_info}; empty if it is not published. */
  public Map<String, String> cacheConfig() {
    return cacheConfig;
  }

  /** Where other processes find the page and the rings, or null. */
  public @Nullable Path directory() {
    return directory;
  }

  /** What the log lines are about. */
  LogOptions logOptions() {
    LogOptions lines =
        LogOptions.of(device).withMfuMetrics(mfuMetrics).withMfuDetails(mfuDetails).withNansInLogits(nansInLogits);
    return graphMode == null ? lines : lines.withGraphs(graphMode, captureSizes);
  }

  /** Which families the engine publishes, and how. */
  EngineFamilies families() {
    EngineFamilies.Builder families = EngineFamilies.builder(modelName, engineIndex, maxModelLen)
        .with(MetricFamily.Gate.LOG_STATS, logStats)
        .with(MetricFamily.Gate.CORRUPTED, nansInLogits)
        .with(MetricFamily.Gate.RESIDENCY, kvCacheMetrics)
        .speculativeTokens(speculativeTokens)
        .maxAdapters(maxAdapters)
        .buckets(customHistogramBuckets)
        .cacheConfig(cacheConfig)
        .workers(workers)
        .directory(directory);
    moreFamilies.accept(families);
    return families.build();
  }

  /** Collects the options; not thread-safe. */
  public static final class Builder {
    private final String modelName;
    private final int maxModelLen;
    private int engineIndex;
    private boolean logStats = true;
    private boolean mfuMetrics;
    private @Nullable ModelShape modelShape;
    private Duration logInterval = Duration.ofSeconds(10);
    private String device = "CPU";
    private @Nullable CounterPage counters;
    private @Nullable MetricsRegistry registry;
    private final List<StatLogger> statLoggers = new ArrayList<>();
    private final List<StatLogger> plugIns = new ArrayList<>();
    private final Map<String, String> cacheConfig = new LinkedHashMap<>();
    private CustomBuckets customHistogramBuckets = CustomBuckets.NONE;
    private int speculativeTokens;
    private int maxAdapters;
    private boolean nansInLogits;
    private boolean kvCacheMetrics;
    private boolean ownLogLine = true;
    private int workers;
    private boolean mfuDetails;
    private boolean discoverPlugIns = true;
    private Consumer<EngineFamilies.Builder> moreFamilies = families -> { };
    private @Nullable Path directory;
    private @Nullable String graphMode;
    private List<Integer> captureSizes = List.of();

    private Builder(String modelName, int maxModelLen) {
      this.modelName = Objects.requireNonNull(modelName, "modelName");
      this.maxModelLen = maxModelLen;
      if (maxModelLen <= 0) {
        throw new IllegalArgumentException("maxModelLen " + maxModelLen + ": must be positive");
      }
    }

    /**
     * Value of the label {@code engine}, 0 unless told otherwise; unique among the engines of a model in a registry.
     */
    public Builder engineIndex(int index) {
      if (index < 0) {
        throw new IllegalArgumentException("engineIndex " + index + ": must not be negative");
      }
      engineIndex = index;
      return this;
    }

    /** False records nothing at all (disable-log-stats). */
    public Builder logStats(boolean on) {
      logStats = on;
      return this;
    }

    /** True estimates the work of each step (enable-mfu-metrics); needs a {@link #modelShape}. */
    public Builder mfuMetrics(boolean on) {
      mfuMetrics = on;
      return this;
    }

    /** The model, for the estimate. */
    public Builder modelShape(ModelShape shape) {
      modelShape = shape;
      return this;
    }

    /**
     * Time between two log lines, 10 s unless told otherwise; zero for none.
     *
     * @throws IllegalArgumentException if it is negative or longer than {@link #MAX_LOG_INTERVAL}
     */
    public Builder logInterval(Duration interval) {
      if (interval.isNegative() || interval.compareTo(MAX_LOG_INTERVAL) > 0) {
        throw new IllegalArgumentException("logInterval " + interval + ": must be in [0, " + MAX_LOG_INTERVAL + "]");
      }
      logInterval = interval;
      return this;
    }

    /**
     * False for no log line of the engine's own, as when a logger of the caller's writes one for several engines; the
     * interval holds for that logger then.
     */
    public Builder ownLogLine(boolean on) {
      ownLogLine = on;
      return this;
    }

    /** Kind of the device in the log line, CPU unless told otherwise. */
    public Builder device(String name) {
      device = Objects.requireNonNull(name, "name");
      return this;
    }

    /** A counter page of the caller; a new one unless told otherwise. */
    public Builder counters(CounterPage page) {
      counters = page;
      return this;
    }

    /** A registry shared with other engines or with the application; a new one unless told otherwise. */
    public Builder registry(MetricsRegistry shared) {
      registry = shared;
      return this;
    }

    /** Adds a logger of somebody else, which runs on a thread of its own and may be slow. */
    public Builder plugIn(StatLogger logger) {
      plugIns.add(logger);
      return this;
    }

    /** Adds a logger of the caller's, which runs under the collector's lock and must return soon. */
    public Builder statLogger(StatLogger logger) {
      statLoggers.add(logger);
      return this;
    }

    /**
     * Publishes {@code vllm:cache_config_info} with these labels, in the order of the map.
     *
     * @throws IllegalArgumentException if a name is no label name, or is {@code engine}, which is added
     */
    public Builder cacheConfig(Map<String, String> labels) {
      for (String name : labels.keySet()) {
        if (!LABEL_NAME.matcher(name).matches() || name.equals("engine")) {
          throw new IllegalArgumentException("cacheConfig label \"" + name
              + "\": must be letters, digits and underscores, and not engine");
        }
      }
      cacheConfig.clear();
      cacheConfig.putAll(labels);
      return this;
    }

    /**
     * Replaces bounds of histograms (custom-histogram-buckets).
     *
     * @param buckets for each family of buckets a list of numbers, as a configuration file holds them
     * @throws IllegalArgumentException if a family is unknown or its bounds are not finite, positive and strictly
     *     increasing; names the family
     */
    public Builder customHistogramBuckets(Map<String, ?> buckets) {
      customHistogramBuckets = CustomBuckets.of(buckets);
      return this;
    }

    /** Publishes speculative decoding with drafts of at most so many tokens; 0, the default, for none. */
    public Builder speculativeTokens(int count) {
      if (count < 0 || count > 255) {
        throw new IllegalArgumentException("speculativeTokens " + count + ": must be in [0, 255]");
      }
      speculativeTokens = count;
      return this;
    }

    /** Publishes the adapters in use, of which at most so many are used at once; 0, the default, for none. */
    public Builder maxAdapters(int count) {
      if (count < 0) {
        throw new IllegalArgumentException("maxAdapters " + count + ": must not be negative");
      }
      maxAdapters = count;
      return this;
    }

    /** True publishes how many requests met a NaN in their logits (compute-nans-in-logits). */
    public Builder computeNansInLogits(boolean on) {
      nansInLogits = on;
      return this;
    }

    /** True publishes how long sampled KV blocks stay (kv-cache-metrics); needs log stats. */
    public Builder kvCacheMetrics(boolean on) {
      kvCacheMetrics = on;
      return this;
    }

    /** Publishes how long each of so many workers waits for the others; 0, the default, for none. */
    public Builder workers(int count) {
      if (count < 0 || count > MAX_WORKERS) {
        throw new IllegalArgumentException("workers " + count + ": must be in [0, " + MAX_WORKERS + "]");
      }
      workers = count;
      return this;
    }

    /** True adds a debug log line with the parts of the estimated work; needs {@link #mfuMetrics}. */
    public Builder mfuDetails(boolean on) {
      mfuDetails = on;
      return this;
    }

    /**
     * Adds the table of the CUDA graphs that ran to the log (cudagraph-metrics); the engine then writes an {@link
     * dev.tacho.metrics.event.EventWriter#graph} a step.
     *
     * @param mode which graphs it uses, as the table shows it
     * @param sizes in tokens, for which it has captured graphs
     */
    public Builder cudagraphMetrics(String mode, List<Integer> sizes) {
      graphMode = Objects.requireNonNull(mode, "mode");
      captureSizes = List.copyOf(sizes);
      return this;
    }

    /** False leaves out loggers that the service loader would find; true unless told otherwise. */
    public Builder discoverPlugIns(boolean on) {
      discoverPlugIns = on;
      return this;
    }

    /** Publishes the families of parts that only some engines have, such as a KV connector. */
    public Builder families(Consumer<EngineFamilies.Builder> more) {
      moreFamilies = Objects.requireNonNull(more, "more");
      return this;
    }

    /**
     * Lets other processes of the same user read the metrics: page and rings lie in files of this directory, which is
     * made if it is not there. A sidecar serves the pages, a {@code FlightRecorder} reads the rings, also of a process
     * that was killed. The files go when the engine is closed; those that dead processes left are deleted when one is
     * opened. Best on a memory file system such as {@code /dev/shm}: on a disk each page that is written back costs.
     */
    public Builder directory(Path forFiles) {
      directory = Objects.requireNonNull(forFiles, "forFiles");
      return this;
    }

    /** Checks and builds. */
    public EngineMetricsOptions build() {
      if (kvCacheMetrics && !logStats) {
        throw new IllegalArgumentException("kvCacheMetrics needs logStats: nothing is recorded without them");
      }
      if (mfuMetrics && modelShape == null) {
        throw new IllegalArgumentException("mfuMetrics needs a modelShape");
      }
      return new EngineMetricsOptions(this);
    }
  }
}
