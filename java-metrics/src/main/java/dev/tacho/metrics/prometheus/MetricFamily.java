package dev.tacho.metrics.prometheus;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One row of the {@link MetricCatalog}: a metric family, what it is for and how its children come about.
 *
 * @param name as registered; a counter's exposed name has {@code _total} at its end, once
 * @param type what kind of number
 * @param labels label names in the order of registration
 * @param values values of the last label that exist from the start; empty if every label is the engine's, or if the
 *     values are positions, which each engine counts for itself
 * @param buckets bounds of a histogram, else null
 * @param onFirstUse true if a child is shown from its first report on, false if from the start
 * @param deprecatedIn the release of vLLM that deprecated it and hides it, null if none did
 * @param gate when the family exists
 * @param question what it helps to answer
 * @param moves when its numbers move
 * @param unit what one of it is
 * @param help one sentence for the exposition
 */
public record MetricFamily(
    String name,
    Type type,
    List<String> labels,
    List<String> values,
    @Nullable BucketFamily buckets,
    boolean onFirstUse,
    @Nullable String deprecatedIn,
    Gate gate,
    Question question,
    Moment moves,
    String unit,
    String help) {

  /** Copies the lists and checks the row. */
  public MetricFamily {
    labels = List.copyOf(labels);
    values = List.copyOf(values);
    if ((buckets != null) != (type == Type.HISTOGRAM)) {
      throw new IllegalArgumentException(name + ": bounds belong to histograms and to nothing else");
    }
  }

  /** Kinds of numbers. */
  public enum Type {
    /** Goes up and down. */
    GAUGE("gauge"),
    /** Only grows. */
    COUNTER("counter"),
    /** Counts observations in buckets. */
    HISTOGRAM("histogram");

    private final String text;

    Type(String text) {
      this.text = text;
    }

    /** The word in a TYPE line. */
    public String text() {
      return text;
    }
  }

  /** When a family exists. */
  public enum Gate {
    /** Always. */
    ALWAYS("Always"),
    /** While statistics are recorded. */
    LOG_STATS(""),
    /** While statistics are recorded and the engine said what its cache is like. */
    CACHE_CONFIG("If the engine says what its cache is like; its settings are further labels"),
    /** As LOG_STATS, if logits are checked for NaNs. */
    CORRUPTED("With compute-nans-in-logits"),
    /** As LOG_STATS, if texts are watermarked. */
    WATERMARK("If texts are watermarked"),
    /** As LOG_STATS, if a connector fetches keys and values. */
    KV_CONSUMER("If a KV connector fetches"),
    /** As LOG_STATS, if the residency of KV blocks is sampled. */
    RESIDENCY("With kv-cache-metrics"),
    /** As LOG_STATS, if adapters may be used. */
    LORA("If adapters may be used; no series before the first snapshot"),
    /** As LOG_STATS, if tokens are drafted. */
    SPECULATION("With speculative decoding"),
    /** As LOG_STATS, for a diffusion model. */
    DIFFUSION("For diffusion models"),
    /** As LOG_STATS, if keys and values are transferred between engines. */
    NIXL("If the KV connector is NIXL"),
    /** As LOG_STATS, if keys and values are offloaded. */
    OFFLOAD("If KV is offloaded"),
    /** As OFFLOAD, if blocks are stored only after some uses. */
    OFFLOAD_THRESHOLD("If KV is offloaded after two or more uses"),
    /** As OFFLOAD, if there are tiers beyond host memory. */
    OFFLOAD_TIERS("If KV is offloaded to tiers"),
    /** As LOG_STATS, if keys and values are offloaded by the simple connector. */
    SIMPLE_OFFLOAD("If KV is offloaded by the simple connector"),
    /** As LOG_STATS, if the engine has said how many workers it has. */
    WORKERS("If the engine has said how many workers it has");

    private final String text;

    Gate(String text) {
      this.text = text;
    }

    /** The condition in words, for the documentation; empty for the usual one, that statistics are recorded. */
    public String text() {
      return text;
    }
  }

  /** What an operator wants to know. */
  public enum Question {
    /** Is work waiting, and why? */
    QUEUE("Is work waiting, and why?"),
    /** How much work is done? */
    THROUGHPUT("How much work is done?"),
    /** How long do callers wait? */
    LATENCY("How long do callers wait?"),
    /** Does the prefix cache help? */
    CACHE("Does the prefix cache help?"),
    /** Do the drafts pay? */
    SPECULATION("Do the drafts pay?"),
    /** How do keys and values come from elsewhere? */
    TRANSFER("How do keys and values come from elsewhere?"),
    /** What does the hardware do? */
    RESOURCES("What does the hardware do?"),
    /** Are the metrics themselves sound? */
    METRICS("Are the metrics themselves sound?");

    private final String text;

    Question(String text) {
      this.text = text;
    }

    /** The question in words. */
    public String text() {
      return text;
    }
  }

  /** Name without a counter's {@code _total}. */
  public String baseName() {
    return type == Type.COUNTER && name.endsWith("_total") ? name.substring(0, name.length() - 6) : name;
  }

  /** Name of a gauge's or counter's sample, and of the family in text 0.0.4. */
  public String exposedName() {
    return type == Type.COUNTER ? baseName() + "_total" : name;
  }

  /** True if each engine counts its own children, as by position; the children of an engine then follow one another. */
  public boolean isCountedByEngine() {
    return labels.contains("position") || labels.contains("worker") || labels.contains("tier");
  }

  /** True if each engine has its own children; false if those of a model's engines are summed. */
  public boolean perEngine() {
    return labels.contains("engine");
  }

}
