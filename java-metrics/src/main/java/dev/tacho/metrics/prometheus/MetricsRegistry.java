package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.page.MetricsSnapshot;
import io.prometheus.client.Collector.MetricFamilySamples;
import io.prometheus.client.CollectorRegistry;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The metrics of one or several engines, and of their guests, in one simpleclient registry. Any thread.
 *
 * <p>Engines join and leave; each takes its own children along. Their text is written from their pages; families that
 * others registered in the simpleclient registry follow, in the same form. The simpleclient registry shows the engines'
 * families too, for exporters other than ours.
 */
public final class MetricsRegistry {
  private static final Map<CollectorRegistry, WeakReference<MetricsRegistry>> OF = new WeakHashMap<>();

  private final CollectorRegistry registry;
  private final MetricsCollector collector;
  private final Map<PrometheusStatLogger, EngineText> engines = new LinkedHashMap<>();
  /** Kept from one exposition to the next; a second one at the same time makes its own. */
  private final AtomicReference<@Nullable TextBuffer> spare = new AtomicReference<>();
  private final ThreadLocal<@Nullable Boolean> writing = new ThreadLocal<>();

  private MetricsRegistry(CollectorRegistry registry, MetricsCollector collector) {
    this.registry = registry;
    this.collector = collector;
    registry.register(new PageCollector(this));
  }

  /** A registry of our own. */
  public static MetricsRegistry create() {
    return create(MetricsCollector.shared());
  }

  /** A registry of our own whose engines a certain collector drains. */
  public static MetricsRegistry create(MetricsCollector collector) {
    return new MetricsRegistry(new CollectorRegistry(true), collector);
  }

  /**
   * The application's registry; the same for the same argument.
   *
   * @throws IllegalArgumentException if somebody else registered a family of our names there
   */
  public static MetricsRegistry of(CollectorRegistry registry) {
    synchronized (OF) {
      WeakReference<MetricsRegistry> known = OF.get(registry);
      MetricsRegistry found = known == null ? null : known.get();
      if (found == null) {
        found = new MetricsRegistry(registry, MetricsCollector.shared());
        OF.put(registry, new WeakReference<>(found));
      }
      return found;
    }
  }

  /** The simpleclient registry, for guests to register in. */
  public CollectorRegistry collectorRegistry() {
    return registry;
  }

  /** The collector that drains this registry's engines. */
  public MetricsCollector collector() {
    return collector;
  }

  /**
   * Takes an engine in; its families appear with every child at 0.
   *
   * @param families what it publishes
   * @return the logger that keeps its values; closing it takes the engine out again
   * @throws IllegalArgumentException if the registry has an engine of this index and model name
   * @throws java.io.UncheckedIOException if the file for other processes cannot be made
   */
  public synchronized PrometheusStatLogger join(EngineFamilies families) {
    int engineIndex = families.engineIndex();
    String modelName = families.modelName();
    for (EngineText engine : engines.values()) {
      if (engine.layout().engineIndex() == engineIndex && engine.layout().modelName().equals(modelName)) {
        throw new IllegalArgumentException("engine " + engineIndex + " of model " + modelName
            + " is in this registry already: give each engine of a model its own engineIndex");
      }
    }
    PrometheusStatLogger logger = new PrometheusStatLogger(families, this);
    engines.put(logger, new EngineText(logger.layout()));
    return logger;
  }

  synchronized void leave(PrometheusStatLogger logger) {
    engines.remove(logger);
  }

  /** The text of all metrics; what engines committed before the call is in it. */
  public String exposition(ExpositionFormat format) {
    return render(format, TextBuffer::toString);
  }

  /** As {@link #exposition}, in UTF-8. */
  public byte[] expositionBytes(ExpositionFormat format) {
    return render(format, TextBuffer::toByteArray);
  }

  /**
   * Writes the text of all metrics, in UTF-8, without a copy of it. No lock is held while the stream is written to.
   *
   * @param format which text form
   * @param out gets the text in one call; stays open
   * @throws IOException if it cannot be written to
   */
  public void writeTo(ExpositionFormat format, OutputStream out) throws IOException {
    IOException failure = render(format, text -> {
      try {
        text.writeTo(out);
        return null;
      } catch (IOException e) {
        return e;
      }
    });
    if (failure != null) {
      throw failure;
    }
  }

  private <T extends @Nullable Object> T render(ExpositionFormat format, Function<TextBuffer, T> reader) {
    List<MetricFamilySamples> guests = guests();
    TextBuffer kept = spare.getAndSet(null);
    TextBuffer text = kept != null ? kept : new TextBuffer();
    withValues(values -> new ExpositionWriter(text).write(values, Collections.enumeration(guests), format));
    T result = reader.apply(text);
    spare.set(text);
    return result;
  }

  /** The values of all engines; what they committed before the call is in them. */
  public MetricsSnapshot snapshot() {
    return withValues(MetricsRegistry::typed);
  }

  /** Drains, copies the values of all engines at one moment, and hands the copies over. */
  synchronized <T> T withValues(Function<List<EngineText>, T> reader) {
    collector.drainThen(() -> engines.forEach((logger, text) -> text.copy(logger)));
    return Objects.requireNonNull(reader.apply(List.copyOf(engines.values())));
  }

  /** True while this thread gathers guests for our own exposition. */
  boolean isWriting() {
    return writing.get() != null;
  }

  /** Families of others. Gathered outside of every lock: their code is not ours. */
  private List<MetricFamilySamples> guests() {
    writing.set(true);
    try {
      return Collections.list(registry.metricFamilySamples());
    } finally {
      writing.remove();
    }
  }

  private static MetricsSnapshot typed(List<EngineText> engines) {
    List<MetricsSnapshot.Value> values = new ArrayList<>();
    for (MetricFamily family : MetricCatalog.families()) {
      EngineText.visit(family, engines, (engine, child) -> values.add(typed(family, child, engine, engines)));
    }
    return new MetricsSnapshot(values);
  }

  private static MetricsSnapshot.Value typed(MetricFamily family, int child, EngineText engine,
      List<EngineText> engines) {
    Map<String, String> labels = engine.labels(family, child);
    return switch (family.type()) {
      case GAUGE -> new MetricsSnapshot.Gauge(family.baseName(), labels, engine.value(family, child, engines));
      case COUNTER -> new MetricsSnapshot.Counter(family.baseName(), labels, engine.value(family, child, engines));
      case HISTOGRAM -> {
        MetricsPage page = engine.values();
        List<Double> bounds = new ArrayList<>();
        List<Long> counts = new ArrayList<>();
        int i = engine.layout().cell(family, child);
        for (double bound : engine.layout().bounds(family)) {
          bounds.add(bound);
          counts.add(page.count(i++));
        }
        counts.add(page.count(i++));
        yield new MetricsSnapshot.Histogram(family.baseName(), labels, bounds, counts, page.get(i));
      }
    };
  }
}
