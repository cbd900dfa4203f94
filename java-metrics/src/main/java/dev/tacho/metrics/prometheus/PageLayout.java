package dev.tacho.metrics.prometheus;

import java.util.EnumMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Where each value of an engine lies in its page, and what labels it has. Immutable.
 *
 * <p>The children of a family lie one after another; a gauge or counter takes one cell, a histogram one for each
 * bucket, one for the infinite bucket and one for the sum. A child that is shown on first use has one more,
 * which counts its reports.
 */
final class PageLayout {
  private final EngineFamilies engine;
  private final IdentityHashMap<MetricFamily, Integer> offsets = new IdentityHashMap<>();
  private final Map<BucketFamily, double[]> bounds = new EnumMap<>(BucketFamily.class);
  private final int cells;

  /** Lays out a page with the families of an engine. */
  PageLayout(EngineFamilies engine) {
    this.engine = engine;
    int next = 0;
    for (MetricFamily family : MetricCatalog.families()) {
      if (engine.has(family)) {
        BucketFamily buckets = family.buckets();
        if (buckets != null) {
          bounds.computeIfAbsent(buckets, engine::bounds);
        }
        offsets.put(family, next);
        next += children(family) * cellsOf(family);
      }
    }
    this.cells = next;
  }

  String modelName() {
    return engine.modelName();
  }

  int engineIndex() {
    return engine.engineIndex();
  }

  /** Children of a family; those of a family that is shown on first use may be hidden. */
  int children(MetricFamily family) {
    int values = Math.max(1, family.values().size());
    if (family.labels().contains("tier")) {
      return Math.max(1, engine.offload().tiers().size()) * values;
    }
    return family.labels().contains("position") ? engine.speculativeTokens()
        : family.labels().contains("worker") ? engine.workers() : values;
  }

  /** The cell that counts the reports of a child of a family that is shown on first use. */
  int reports(MetricFamily family, int child) {
    return cell(family, child) + cellsOf(family) - 1;
  }

  int cells() {
    return cells;
  }

  boolean has(MetricFamily family) {
    return offsets.containsKey(family);
  }

  /** First cell of a child. */
  int cell(MetricFamily family, int child) {
    Integer offset = offsets.get(family);
    if (offset == null) {
      throw new IllegalArgumentException("the page has no " + family.name());
    }
    return offset + child * cellsOf(family);
  }

  /** Upper bounds of a histogram. Not to be changed. */
  double[] bounds(MetricFamily family) {
    BucketFamily buckets = family.buckets();
    double[] found = buckets == null ? null : bounds.get(buckets);
    if (found == null) {
      throw new IllegalArgumentException(family.name() + " has no buckets here");
    }
    return found;
  }

  /** Label names and values of a child, in the order of registration. */
  Map<String, String> labels(MetricFamily family, int child) {
    Map<String, String> labels = new LinkedHashMap<>();
    if (family.gate() == MetricFamily.Gate.CACHE_CONFIG) {
      labels.putAll(engine.cacheConfig());
    }
    List<String> values = family.values();
    List<String> tiers = engine.offload().tiers();
    for (String name : family.labels()) {
      if (name.equals("tier") && tiers.isEmpty()) {
        continue;
      }
      labels.put(name, switch (name) {
        case "model_name" -> engine.modelName();
        case "engine" -> Integer.toString(engine.engineIndex());
        case "tier" -> tiers.get(child / Math.max(1, values.size()));
        case "max_lora" -> Integer.toString(engine.maxAdapters());
        case "waiting_lora_adapters", "running_lora_adapters" -> "";
        case "position", "worker" -> Integer.toString(child);
        default -> engine.offload().labels().getOrDefault(name, "");
      });
    }
    if (!values.isEmpty()) {
      labels.put(family.labels().get(family.labels().size() - 1), values.get(child % values.size()));
    }
    return labels;
  }

  private int cellsOf(MetricFamily family) {
    int shown = family.onFirstUse() ? 1 : 0;
    return shown + (family.type() == MetricFamily.Type.HISTOGRAM ? bounds(family).length + 2 : 1);
  }
}
