package dev.tacho.metrics;

import dev.tacho.metrics.collector.DrainReport;
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
import dev.tacho.metrics.stats.ConnectorInbox;
import dev.tacho.metrics.stats.MemoryArea;
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
  private final EngineMetricsOptions options;
  private final PrometheusStatLogger published;
  private final EventWriter engineWriter;
  private final EventWriter outputWriter;
  private final @Nullable EngineFeed feed;
  private final @Nullable EngineRings rings;
  private final DeviceFeed device;
  private final ConnectorInbox connectors;

  private EngineMetricsSource(EngineMetricsOptions options) {
    this.options = options;
    MetricsRegistry registry = options.registry();
    published = registry.join(options.families());
    device = new DeviceFeed(published, options.workers(), System.nanoTime());
    List<StatLogger> plugIns = new ArrayList<>(options.plugIns());
    if (options.discoverPlugIns()) {
      plugIns.addAll(DetachedStatLogger.discover());
    }
    boolean recording = options.logStats() || !options.statLoggers().isEmpty() || !plugIns.isEmpty();
    connectors = new ConnectorInbox(recording);
    rings = recording ? rings(options, published) : null;
    if (rings != null) {
      EngineFeed joined = feed(plugIns, rings);
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

  private static EngineRings rings(EngineMetricsOptions options, PrometheusStatLogger published) {
    try {
      return EngineRings.of(options);
    } catch (RuntimeException e) {
      published.close();
      throw e;
    }
  }

  private EngineFeed feed(List<StatLogger> foreign, EngineRings rings) {
    long now = System.nanoTime();
    List<StatLogger> loggers = new ArrayList<>(options.statLoggers());
    List<DetachedStatLogger> plugIns = foreign.stream().map(DetachedStatLogger::new).toList();
    loggers.addAll(plugIns);
    if (options.ownLogLine()) {
      loggers.add(new LoggingStatLogger(options.engineIndex(), options.logOptions(), now));
    }
    loggers.add(published);
    ModelShape shape = options.mfuMetrics() ? options.modelShape() : null;
    CounterPage counters = options.counters();
    return new EngineFeed(options.engineIndex(), shape == null ? null : new PerfEstimator(shape, options.mfuDetails()),
        new StatLoggerManager(loggers, options.logInterval(), now, connectors),
        report -> {
          published.counters(counters, report);
          rings.tellTime(report.nanos());
          if (!plugIns.isEmpty()) {
            published.plugIns(plugIns.stream().mapToLong(DetachedStatLogger::lag).sum(),
                plugIns.stream().mapToLong(DetachedStatLogger::dropped).sum());
          }
          device.memory(MemoryArea.METRICS, rings.bytes() + published.bytes() + counters.bytes());
          device.publish(System.nanoTime());
        }, rings.engine(), rings.output());
  }

  /**
   * Joins the metrics.
   *
   * @param options model, engine index and what to publish
   * @throws IllegalArgumentException if the registry has an engine of this index and model name already
   * @throws java.io.UncheckedIOException if a file in the options' directory cannot be made; names it
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

  /** Takes what a KV connector or an encoder cache reports; any thread but the engine's. */
  public ConnectorInbox connectors() {
    return connectors;
  }

  /** Takes what the engine's device does: counters to poll, its peaks, memory. */
  public DeviceFeed device() {
    return device;
  }

  /** What the engine was opened with. */
  public EngineMetricsOptions options() {
    return options;
  }

  /**
   * Says whether the engine sleeps, after its memory was given back or is there again.
   *
   * @param asleep true when it falls asleep, false when it wakes with all its memory
   * @param level 1: the weights are offloaded; 2: everything is discarded; other levels: neither
   */
  public void sleepState(boolean asleep, int level) {
    options.registry().collector().drainThen(() -> published.sleepState(asleep, level));
  }

  /** Says what state the engine is in. */
  public void lifecycle(EngineLifecycle state) {
    options.counters().set(EngineCounter.LIFECYCLE, state.ordinal());
    if (feed == null) {
      options.registry().collector().drainThen(() -> published.counters(options.counters(), DrainReport.EMPTY));
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
    if (rings != null) {
      rings.close();
    }
  }
}
