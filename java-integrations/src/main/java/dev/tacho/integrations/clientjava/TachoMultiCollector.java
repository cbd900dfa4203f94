package dev.tacho.integrations.clientjava;

import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.prometheus.MetricCatalog;
import dev.tacho.metrics.prometheus.MetricFamily;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import io.prometheus.metrics.model.registry.MultiCollector;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import io.prometheus.metrics.model.snapshots.PrometheusNaming;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Serves the families of the engines of a {@link MetricsRegistry} from a registry of client_java 1.x, as Spring Boot
 * uses it. Register it once; engines come and go by themselves. Any thread; a scrape drains the engines first.
 *
 * <p>What comes out is client_java's text: the same families, labels and values, names with their colon, counts
 * without {@code .0}, families sorted by name. Releases that reserve the ends {@code _total} and {@code _info} (1.3
 * does, 1.10 does not) show the histogram {@code vllm:iteration_tokens_total} and the {@code _info} gauges without that
 * end. Guests of the simpleclient registry are not served here: an application with client_java has them there already.
 */
public final class TachoMultiCollector implements MultiCollector {
  private final MetricsRegistry registry;
  private final Map<String, String> help = new LinkedHashMap<>();

  /**
   * A collector; {@link #register} is shorter.
   *
   * @param registry whose engines are served
   */
  public TachoMultiCollector(MetricsRegistry registry) {
    this.registry = registry;
    for (MetricFamily family : MetricCatalog.families()) {
      help.put(family.baseName(), family.help());
    }
  }

  /**
   * Serves the engines of one registry from another.
   *
   * @param registry whose engines are served
   * @param target the application's
   * @return what was registered there, to be unregistered
   */
  public static TachoMultiCollector register(MetricsRegistry registry, PrometheusRegistry target) {
    TachoMultiCollector collector = new TachoMultiCollector(registry);
    target.register(collector);
    return collector;
  }

  @Override
  public MetricSnapshots collect() {
    Map<String, List<MetricsSnapshot.Value>> byName = new LinkedHashMap<>();
    for (MetricsSnapshot.Value value : registry.snapshot().values()) {
      byName.computeIfAbsent(value.name(), name -> new ArrayList<>()).add(value);
    }
    List<MetricSnapshot> families = new ArrayList<>();
    byName.forEach((name, values) -> families.add(family(name, values)));
    return new MetricSnapshots(families);
  }

  private MetricSnapshot family(String name, List<MetricsSnapshot.Value> values) {
    String valid = PrometheusNaming.isValidMetricName(name) ? name : name.substring(0, name.lastIndexOf('_'));
    String sentence = help.getOrDefault(name, "");
    return switch (values.get(0)) {
      case MetricsSnapshot.Gauge first -> gauges(valid, sentence, values);
      case MetricsSnapshot.Counter first -> counters(valid, sentence, values);
      case MetricsSnapshot.Histogram first -> histograms(valid, sentence, values);
    };
  }

  private static MetricSnapshot gauges(String name, String help, List<MetricsSnapshot.Value> values) {
    GaugeSnapshot.Builder family = GaugeSnapshot.builder().name(name).help(help);
    for (MetricsSnapshot.Value value : values) {
      if (value instanceof MetricsSnapshot.Gauge gauge) {
        family.dataPoint(GaugeSnapshot.GaugeDataPointSnapshot.builder().labels(labels(value)).value(gauge.value())
            .build());
      }
    }
    return family.build();
  }

  private static MetricSnapshot counters(String name, String help, List<MetricsSnapshot.Value> values) {
    CounterSnapshot.Builder family = CounterSnapshot.builder().name(name).help(help);
    for (MetricsSnapshot.Value value : values) {
      if (value instanceof MetricsSnapshot.Counter counter) {
        family.dataPoint(CounterSnapshot.CounterDataPointSnapshot.builder().labels(labels(value))
            .value(counter.value()).build());
      }
    }
    return family.build();
  }

  private static MetricSnapshot histograms(String name, String help, List<MetricsSnapshot.Value> values) {
    HistogramSnapshot.Builder family = HistogramSnapshot.builder().name(name).help(help);
    for (MetricsSnapshot.Value value : values) {
      if (value instanceof MetricsSnapshot.Histogram histogram) {
        List<Double> bounds = new ArrayList<>(histogram.bounds());
        bounds.add(Double.POSITIVE_INFINITY);
        family.dataPoint(HistogramSnapshot.HistogramDataPointSnapshot.builder().labels(labels(value))
            .classicHistogramBuckets(ClassicHistogramBuckets.of(bounds, histogram.counts()))
            .sum(histogram.sum()).build());
      }
    }
    return family.build();
  }

  private static Labels labels(MetricsSnapshot.Value value) {
    Map<String, String> labels = value.labels();
    return Labels.of(labels.keySet().toArray(new String[0]), labels.values().toArray(new String[0]));
  }
}
