package dev.tacho.metrics;

import dev.tacho.metrics.collector.EngineFeed;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.logger.DetachedStatLogger;
import dev.tacho.metrics.logger.LoggingStatLogger;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.logger.StatLoggerManager;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.EngineLifecycle;
import dev.tacho.metrics.page.MetricsSnapshot;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import dev.tacho.metrics.prometheus.PrometheusStatLogger;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.SegmentSource;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An engine's membership in the metrics: the writers of its events, its counters, and the text of the registry that it
 * publishes in.
 *
 * <p>{@link #engineWriter} belongs to the engine thread, {@link #outputWriter} to the output thread; everything else is
 * for any thread. {@link #close} drains what was committed, then removes this engine's values from the registry and
 * nobody else's; a writer used afterwards writes into a ring that nobody reads.
 */
public final class EngineMetricsSource implements AutoCloseable {
  /** The output thread writes one short record a step, and now and then another. */
  private static final int OUTPUT_RING_BYTES = 1 << 16;

  private final EngineMetricsOptions options;
  private final PrometheusStatLogger published;
  private final EventWriter engineWriter;
  private final EventWriter outputWriter;
  private final @Nullable EngineFeed feed;

  private EngineMetricsSource(EngineMetricsOptions options) {
    this.options = options;
    MetricsRegistry registry = options.registry();
    published = registry.join(options.families());
    if (options.logStats() || !options.statLoggers().isEmpty() || !options.plugIns().isEmpty()) {
      EngineFeed joined = feed(options, published);
      feed = joined;
      engineWriter = joined.engineWriter();
      outputWriter = joined.outputWriter();
      registry.collector().join(joined);
    } else {
      feed = null;
      engineWriter = EventWriter.disabled();
      outputWriter = EventWriter.disabled();
    }
  }

  private static EngineFeed feed(EngineMetricsOptions options, PrometheusStatLogger published) {
    long now = System.nanoTime();
    List<StatLogger> loggers = new ArrayList<>(options.statLoggers());
    List<DetachedStatLogger> plugIns = options.plugIns().stream().map(DetachedStatLogger::new).toList();
    loggers.addAll(plugIns);
    if (options.logStats() && options.logInterval().isPositive()) {
      loggers.add(new LoggingStatLogger(options.engineIndex(), options.logOptions(), now));
    }
    loggers.add(published);
    ModelShape shape = options.mfuMetrics() ? options.modelShape() : null;
    CounterPage counters = options.counters();
    return new EngineFeed(options.engineIndex(), shape == null ? null : new PerfEstimator(shape),
        new StatLoggerManager(loggers, options.logInterval(), now),
        (full, lost, restarts) -> {
          published.counters(counters, full, lost, restarts);
          published.plugIns(plugIns.stream().mapToLong(DetachedStatLogger::lag).sum(),
              plugIns.stream().mapToLong(DetachedStatLogger::dropped).sum());
        }, new EventRing(),
        new EventRing(OUTPUT_RING_BYTES, EventRing.DEFAULT_MAX_BYTES, SegmentSource.OFF_HEAP));
  }

  /**
   * Joins the metrics.
   *
   * @param options model, engine index and what to publish
   * @throws IllegalArgumentException if the registry has an engine of this index and model name already
   */
  public static EngineMetricsSource open(EngineMetricsOptions options) {
    return new EngineMetricsSource(options);
  }

  /** The engine thread's writer; disabled if log stats are off. */
  public EventWriter engineWriter() {
    return engineWriter;
  }

  /** The output thread's writer; disabled if log stats are off. */
  public EventWriter outputWriter() {
    return outputWriter;
  }

  /** The engine's counters. */
  public CounterPage counters() {
    return options.counters();
  }

  /** What the engine was opened with. */
  public EngineMetricsOptions options() {
    return options;
  }

  /** Says what state the engine is in. */
  public void lifecycle(EngineLifecycle state) {
    options.counters().set(EngineCounter.LIFECYCLE, state.ordinal());
    if (feed == null) {
      options.registry().collector().drainThen(() -> published.counters(options.counters(), 0, 0, 0));
    }
  }

  /** The registry: every engine in it, and its other metrics. */
  public MetricsRegistry registry() {
    return options.registry();
  }

  /** The registry's text; what was committed before the call is in it. */
  public String exposition(ExpositionFormat format) {
    return options.registry().exposition(format);
  }

  /** The values of every engine in the registry; what was committed before the call is in them. */
  public MetricsSnapshot snapshot() {
    return options.registry().snapshot();
  }

  /** Leaves the metrics. Idempotent. */
  @Override
  public void close() {
    EngineFeed joined = feed;
    if (joined != null) {
      options.registry().collector().leave(joined);
    } else {
      published.close();
    }
  }
}
