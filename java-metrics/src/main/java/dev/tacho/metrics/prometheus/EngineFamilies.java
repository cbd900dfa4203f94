package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import java.nio.file.Path;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.DoubleSupplier;
import org.jspecify.annotations.Nullable;

/** Which families an engine publishes, under which labels and with which bounds. Immutable; see {@link #builder}. */
public final class EngineFamilies {
  private final String modelName;
  private final int engineIndex;
  private final int maxModelLen;
  private final Set<Gate> gates;
  private final Map<String, String> cacheConfig;
  private final CustomBuckets buckets;
  private final int speculativeTokens;
  private final int maxAdapters;
  private final int workers;
  private final OffloadDescription offload;
  private final @Nullable String hiddenOfVersion;
  private final DoubleSupplier wallClock;
  private final @Nullable Path directory;

  private EngineFamilies(Builder builder) {
    this.modelName = builder.modelName;
    this.engineIndex = builder.engineIndex;
    this.maxModelLen = builder.maxModelLen;
    this.gates = Collections.unmodifiableSet(EnumSet.copyOf(builder.gates));
    this.cacheConfig = Collections.unmodifiableMap(new LinkedHashMap<>(builder.cacheConfig));
    this.buckets = builder.buckets;
    this.speculativeTokens = builder.speculativeTokens;
    this.maxAdapters = builder.maxAdapters;
    this.workers = builder.workers;
    this.offload = builder.offload;
    this.hiddenOfVersion = builder.hiddenOfVersion;
    this.wallClock = builder.wallClock;
    this.directory = builder.directory;
  }

  /**
   * Starts with what every engine publishes.
   *
   * @param modelName value of the label model_name
   * @param engineIndex value of the label engine
   * @param maxModelLen longest context in tokens
   */
  public static Builder builder(String modelName, int engineIndex, int maxModelLen) {
    return new Builder(modelName, engineIndex, maxModelLen);
  }

  String modelName() {
    return modelName;
  }

  int engineIndex() {
    return engineIndex;
  }

  /** True if the engine has a family. */
  boolean has(MetricFamily family) {
    return open(family.gate()) && HiddenMetrics.isShown(family, hiddenOfVersion);
  }

  /** True if the engine has a family behind a gate. */
  boolean open(Gate gate) {
    return gate == Gate.ALWAYS || (gates.contains(Gate.LOG_STATS) && gates.contains(gate));
  }

  Map<String, String> cacheConfig() {
    return cacheConfig;
  }

  double[] bounds(BucketFamily family) {
    return buckets.bounds(family, maxModelLen);
  }

  int maxModelLen() {
    return maxModelLen;
  }

  Set<Gate> gates() {
    return gates;
  }

  CustomBuckets buckets() {
    return buckets;
  }

  /** Where the page's file is to lie, or null for none. */
  @Nullable Path directory() {
    return directory;
  }

  int speculativeTokens() {
    return speculativeTokens;
  }

  int maxAdapters() {
    return maxAdapters;
  }

  int workers() {
    return workers;
  }

  OffloadDescription offload() {
    return offload;
  }

  /** The release whose hidden families are shown, or null. */
  @Nullable String hiddenOfVersion() {
    return hiddenOfVersion;
  }

  /** Seconds since 1970. */
  double wallClockSeconds() {
    return wallClock.getAsDouble();
  }

  /** Collects the description; not thread-safe. */
  public static final class Builder {
    private final String modelName;
    private final int engineIndex;
    private final int maxModelLen;
    private final EnumSet<Gate> gates = EnumSet.of(Gate.ALWAYS);
    private final Map<String, String> cacheConfig = new LinkedHashMap<>();
    private CustomBuckets buckets = CustomBuckets.NONE;
    private int speculativeTokens;
    private int maxAdapters;
    private int workers;
    private OffloadDescription offload = OffloadDescription.NONE;
    private @Nullable String hiddenOfVersion;
    private @Nullable Path directory;
    private DoubleSupplier wallClock = () -> System.currentTimeMillis() / 1e3;

    private Builder(String modelName, int engineIndex, int maxModelLen) {
      this.modelName = modelName;
      this.engineIndex = engineIndex;
      this.maxModelLen = maxModelLen;
    }

    /** Adds the families behind a gate, if a condition holds. Nothing but ALWAYS is shown without LOG_STATS. */
    public Builder with(Gate gate, boolean condition) {
      if (condition) {
        gates.add(gate);
      }
      return this;
    }

    /** Adds {@code vllm:cache_config_info} with these labels, in the order of the map, unless there are none. */
    public Builder cacheConfig(Map<String, String> labels) {
      cacheConfig.putAll(labels);
      return with(Gate.CACHE_CONFIG, !labels.isEmpty());
    }

    /** Replaces bounds. */
    public Builder buckets(CustomBuckets custom) {
      buckets = custom;
      return this;
    }

    /** Adds the families of speculative decoding, for so many draft tokens a step, unless it is 0. */
    public Builder speculativeTokens(int count) {
      speculativeTokens = count;
      return with(Gate.SPECULATION, count > 0);
    }

    /** Adds the family of adapters, of which so many may be used at once, unless it is 0. */
    public Builder maxAdapters(int count) {
      maxAdapters = count;
      return with(Gate.LORA, count > 0);
    }

    /** Adds the families of so many workers, unless it is 0. */
    public Builder workers(int count) {
      workers = count;
      return with(Gate.WORKERS, count > 0);
    }

    /** Adds the families of a connector that offloads keys and values. */
    public Builder offload(OffloadDescription description) {
      offload = description;
      gates.addAll(description.gates());
      return this;
    }

    /**
     * Shows families that a release has hidden (show-hidden-metrics-for-version).
     *
     * @param version the release before the current one, such as 0.32; null or any other shows nothing more
     * @throws IllegalArgumentException if it is no version
     */
    public Builder showHiddenMetricsForVersion(@Nullable String version) {
      hiddenOfVersion = version == null ? null : HiddenMetrics.check(version);
      return this;
    }

    /** Where the values that are times come from, in seconds since 1970; the system's clock unless told otherwise. */
    public Builder wallClock(DoubleSupplier clock) {
      wallClock = clock;
      return this;
    }

    /** Publishes in a file of this directory too, for other processes to read; null for none. */
    public Builder directory(@Nullable Path forPages) {
      directory = forPages;
      return this;
    }

    /** Builds. */
    public EngineFamilies build() {
      return new EngineFamilies(this);
    }
  }
}
