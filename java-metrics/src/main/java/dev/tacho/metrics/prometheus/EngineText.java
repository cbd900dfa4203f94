package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import java.nio.charset.StandardCharsets;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Everything of an engine's exposition but the numbers, made once when it joins: each sample's name and labels. Also
 * holds the copy of its page that a scrape renders from. Used under the registry's lock.
 */
final class EngineText {
  private final PageLayout layout;
  private final MetricsPage copy;
  private final Exemplars exemplars;
  private @Nullable String adapters;
  /** For each family, the prefixes of each child's samples in their order. */
  private final IdentityHashMap<MetricFamily, byte[][]> prefixes = new IdentityHashMap<>();

  EngineText(PageLayout layout) {
    this.layout = layout;
    this.copy = new MetricsPage(layout.cells());
    this.exemplars = new Exemplars(layout);
    for (MetricFamily family : MetricCatalog.families()) {
      if (layout.has(family)) {
        prefixes.put(family, prefixes(layout, family));
      }
    }
  }

  PageLayout layout() {
    return layout;
  }

  /** The values to render. */
  MetricsPage values() {
    return copy;
  }

  /** Sets the adapters to render, joined by commas; null before the first snapshot. */
  void adapters(@Nullable String joined) {
    adapters = joined;
  }

  /** Takes the values of this moment; under the collector's lock. */
  void copy(PrometheusStatLogger logger) {
    logger.page().copyTo(copy);
    logger.exemplars().copyTo(exemplars);
    adapters = logger.adapters();
  }

  /** Takes each child that is shown. */
  @FunctionalInterface
  interface ChildVisitor {
    void visit(EngineText engine, int child);
  }

  /** Visits the children of a family over all engines in the order of the exposition. */
  static void visit(MetricFamily family, List<EngineText> engines, ChildVisitor visitor) {
    if (family.isCountedByEngine()) {
      for (EngineText engine : engines) {
        int children = engine.shows(family, engines) ? engine.layout().children(family) : 0;
        for (int child = 0; child < children; child++) {
          if (engine.isShown(family, child)) {
            visitor.visit(engine, child);
          }
        }
      }
      return;
    }
    for (int child = 0; child < Math.max(1, family.values().size()); child++) {
      for (EngineText engine : engines) {
        if (engine.shows(family, engines) && engine.isShown(family, child)) {
          visitor.visit(engine, child);
        }
      }
    }
  }

  /**
   * True if this engine shows a family: if it has it, and if it is the first of its model to have it where the family
   * is the model's and not the engine's.
   */
  boolean shows(MetricFamily family, List<EngineText> engines) {
    if (!layout().has(family)) {
      return false;
    }
    if (family.gate() == MetricFamily.Gate.LORA) {
      return adapters != null && isFirstWithAdapters(engines);
    }
    if (!family.perEngine()) {
      for (EngineText other : engines) {
        if (other.isSameModel(this) && other.layout().has(family)) {
          return other == this;
        }
      }
    }
    return true;
  }

  /** True unless the child waits for its first report. */
  private boolean isShown(MetricFamily family, int child) {
    return !family.onFirstUse() || copy.count(layout().reports(family, child)) > 0;
  }

  /** The value of a child that is not a histogram: the engine's own, or the sum over its model's engines. */
  double value(MetricFamily family, int child, List<EngineText> engines) {
    if (family.perEngine() || family.gate() == MetricFamily.Gate.LORA) {
      return copy.get(layout().cell(family, child));
    }
    double sum = 0;
    for (EngineText other : engines) {
      if (other.isSameModel(this) && other.layout().has(family)) {
        sum += other.copy.get(other.layout().cell(family, child));
      }
    }
    return sum;
  }

  /** Writes the samples of one child of a family that the engine shows; exemplars if the format knows them. */
  void write(TextBuffer out, MetricFamily family, int child, List<EngineText> engines, boolean openMetrics) {
    byte[][] lines = prefixes.get(family);
    if (lines == null) {
      return;
    }
    if (family.gate() == MetricFamily.Gate.LORA) {
      out.line(prefix(family.exposedName(), labels(family, child)), value(family, child, engines));
      return;
    }
    if (family.type() != MetricFamily.Type.HISTOGRAM) {
      out.line(lines[child], value(family, child, engines));
      return;
    }
    int cell = layout().cell(family, child);
    int buckets = layout().bounds(family).length + 1;
    int line = child * (buckets + 2);
    long count = 0;
    for (int i = 0; i < buckets; i++) {
      count += copy.count(cell + i);
      Exemplars.Exemplar exemplar = openMetrics ? exemplars.get(family, i) : null;
      if (exemplar == null) {
        out.line(lines[line++], count);
      } else {
        out.put(lines[line++]).put((double) count);
        exemplar.write(out);
        out.put('\n');
      }
    }
    out.line(lines[line++], count);
    out.line(lines[line], copy.get(cell + buckets));
  }

  /** Label names and values of a child at the moment of the copy, in the order of registration. */
  Map<String, String> labels(MetricFamily family, int child) {
    Map<String, String> labels = layout().labels(family, child);
    String names = adapters;
    if (family.gate() == MetricFamily.Gate.LORA && names != null) {
      labels.put("waiting_lora_adapters", names);
      labels.put("running_lora_adapters", names);
    }
    return labels;
  }

  /** Engines without a label of their own share a series when their labels are the same. */
  private boolean isFirstWithAdapters(List<EngineText> engines) {
    Map<String, String> own = labels(MetricCatalog.LORA_REQUESTS, 0);
    for (EngineText other : engines) {
      if (other.adapters != null && other.layout().has(MetricCatalog.LORA_REQUESTS)
          && other.labels(MetricCatalog.LORA_REQUESTS, 0).equals(own)) {
        return other == this;
      }
    }
    return true;
  }

  private boolean isSameModel(EngineText other) {
    return layout().modelName().equals(other.layout().modelName());
  }

  private static byte[][] prefixes(PageLayout layout, MetricFamily family) {
    if (family.type() != MetricFamily.Type.HISTOGRAM) {
      byte[][] lines = new byte[layout.children(family)][];
      for (int child = 0; child < lines.length; child++) {
        lines[child] = prefix(family.exposedName(), layout.labels(family, child));
      }
      return lines;
    }
    double[] bounds = layout.bounds(family);
    byte[][] lines = new byte[layout.children(family) * (bounds.length + 3)][];
    int line = 0;
    for (int child = 0; child < layout.children(family); child++) {
      Map<String, String> labels = layout.labels(family, child);
      for (int i = 0; i <= bounds.length; i++) {
        Map<String, String> withBound = new TreeMap<>(labels);
        withBound.put("le", NumberFormat.format(i < bounds.length ? bounds[i] : Double.POSITIVE_INFINITY));
        lines[line++] = prefix(family.name() + "_bucket", withBound);
      }
      lines[line++] = prefix(family.name() + "_count", labels);
      lines[line++] = prefix(family.name() + "_sum", labels);
    }
    return lines;
  }

  static byte[] prefix(String name, Map<String, String> labels) {
    StringBuilder text = new StringBuilder(name);
    if (!labels.isEmpty()) {
      char before = '{';
      for (Map.Entry<String, String> label : new TreeMap<>(labels).entrySet()) {
        text.append(before).append(label.getKey()).append("=\"");
        ExpositionWriter.escapeValue(text, label.getValue());
        text.append('"');
        before = ',';
      }
      text.append('}');
    }
    return text.append(' ').toString().getBytes(StandardCharsets.UTF_8);
  }
}
