package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.prometheus.MetricFamily.Gate;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.DoubleSupplier;

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
  private final DoubleSupplier wallClock;

  private EngineFamilies(Builder builder) {
    this.modelName = builder.modelName;
    this.engineIndex = builder.engineIndex;
    this.maxModelLen = builder.maxModelLen;
    this.gates = Collections.unmodifiableSet(EnumSet.copyOf(builder.gates));
    this.cacheConfig = Collections.unmodifiableMap(new LinkedHashMap<>(builder.cacheConfig));
    this.buckets = builder.buckets;
    this.speculativeTokens = builder.speculativeTokens;
    this.maxAdapters = builder.maxAdapters;
    this.wallClock = builder.wallClock;
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

  int speculativeTokens() {
    return speculativeTokens;
  }

  int maxAdapters() {
    return maxAdapters;
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

    /** Where the values that are times come from, in seconds since 1970; the system's clock unless told otherwise. */
    public Builder wallClock(DoubleSupplier clock) {
      wallClock = clock;
      return this;
    }

    /** Builds. */
    public EngineFamilies build() {
      return new EngineFamilies(this);
    }
  }
}
