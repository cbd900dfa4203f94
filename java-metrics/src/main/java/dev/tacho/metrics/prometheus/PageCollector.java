package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import io.prometheus.client.Collector;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Shows the engines' pages as families of a simpleclient registry, for exporters other than ours. While our own
 * exposition gathers the registry's guests, it shows nothing: that exposition writes the pages itself.
 */
final class PageCollector extends Collector implements Collector.Describable {
  private final MetricsRegistry registry;

  PageCollector(MetricsRegistry registry) {
    this.registry = registry;
  }

  @Override
  public List<MetricFamilySamples> collect() {
    return registry.isWriting() ? List.of() : registry.withValues(PageCollector::samples);
  }

  /** Names that the registry is to keep for us, whichever engines join later. */
  @Override
  public List<MetricFamilySamples> describe() {
    List<MetricFamilySamples> families = new ArrayList<>();
    for (MetricFamily family : MetricCatalog.families()) {
      families.add(new MetricFamilySamples(family.baseName(), type(family), family.help(), List.of()));
    }
    return families;
  }

  private static List<MetricFamilySamples> samples(List<EngineText> engines) {
    List<MetricFamilySamples> families = new ArrayList<>();
    for (MetricFamily family : MetricCatalog.families()) {
      List<MetricFamilySamples.Sample> samples = new ArrayList<>();
      EngineText.visit(family, engines, (engine, child) -> samples(family, child, engine, engines, samples));
      if (!samples.isEmpty()) {
        families.add(new MetricFamilySamples(family.baseName(), type(family), family.help(), samples));
      }
    }
    return families;
  }

  private static void samples(MetricFamily family, int child, EngineText engine, List<EngineText> engines,
      List<MetricFamilySamples.Sample> samples) {
    PageLayout layout = engine.layout();
    MetricsPage values = engine.values();
    Map<String, String> labels = engine.labels(family, child);
    List<String> names = List.copyOf(labels.keySet());
    List<String> texts = List.copyOf(labels.values());
    if (family.type() != MetricFamily.Type.HISTOGRAM) {
      double value = engine.value(family, child, engines);
      samples.add(new MetricFamilySamples.Sample(family.exposedName(), names, texts, value));
      return;
    }
    int cell = layout.cell(family, child);
    double[] bounds = layout.bounds(family);
    List<String> bucketNames = with(names, "le");
    long count = 0;
    for (int i = 0; i <= bounds.length; i++) {
      count += values.count(cell + i);
      String bound = doubleToGoString(i < bounds.length ? bounds[i] : Double.POSITIVE_INFINITY);
      samples.add(
          new MetricFamilySamples.Sample(family.name() + "_bucket", bucketNames, with(texts, bound), count));
    }
    samples.add(new MetricFamilySamples.Sample(family.name() + "_count", names, texts, count));
    double sum = values.get(cell + bounds.length + 1);
    samples.add(new MetricFamilySamples.Sample(family.name() + "_sum", names, texts, sum));
  }

  private static List<String> with(List<String> list, String last) {
    List<String> longer = new ArrayList<>(list);
    longer.add(last);
    return longer;
  }

  private static Collector.Type type(MetricFamily family) {
    return switch (family.type()) {
      case GAUGE -> Collector.Type.GAUGE;
      case COUNTER -> Collector.Type.COUNTER;
      case HISTOGRAM -> Collector.Type.HISTOGRAM;
    };
  }
}
