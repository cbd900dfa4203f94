package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.collector.DrainReport;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.EngineLifecycle;
import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.perf.DeviceCounters;
import dev.tacho.metrics.perf.DeviceRates;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.MemoryArea;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Keeps an engine's values in its page, where scrapes find them. Made by {@link MetricsRegistry#join}; called under the
 * collector's lock alone.
 */
public final class PrometheusStatLogger implements StatLogger {
  /** Adapters that a label names; of more it says that there are more. */
  static final int MAX_ADAPTER_NAMES = 100;

  private final EngineFamilies families;
  private final PageLayout layout;
  private final @Nullable PageFile file;
  private final MetricsPage page;
  private final MetricsRegistry registry;
  private final boolean logStats;
  private final @Nullable RecordedCells recorded;
  private final @Nullable FeedCells feed;
  private final @Nullable ReconciledCounters reconciled;
  private final Exemplars exemplars;
  private final @Nullable DeviceCells device;
  private @Nullable EngineLifecycle lifecycle;
  private @Nullable String adapters;

  PrometheusStatLogger(EngineFamilies families, MetricsRegistry registry) {
    this.families = families;
    this.layout = new PageLayout(families);
    this.file = families.directory() == null ? null : PageFile.create(families.directory(), families, layout);
    this.page = file == null ? new MetricsPage(layout.cells()) : file.page();
    this.exemplars = new Exemplars(layout);
    this.registry = registry;
    this.logStats = layout.has(MetricCatalog.RUNNING);
    this.feed = logStats ? new FeedCells(page, layout) : null;
    this.reconciled = logStats ? new ReconciledCounters(page, layout) : null;
    this.recorded = logStats ? new RecordedCells(page, layout) : null;
    this.device = logStats ? new DeviceCells(page, layout) : null;
    if (logStats) {
      page.set(layout.cell(MetricCatalog.SLEEP_STATE, 0), 1);
    }
    if (layout.has(MetricCatalog.CACHE_CONFIG)) {
      page.set(layout.cell(MetricCatalog.CACHE_CONFIG, 0), 1);
    }
    lifecycle(EngineLifecycle.STARTING);
    page.endUpdate(wallMillis());
  }

  private long wallMillis() {
    return (long) (families.wallClockSeconds() * 1000);
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    RecordedCells to = recorded;
    if (to == null) {
      return;
    }
    page.beginUpdate();
    if (scheduler != null) {
      to.scheduler(scheduler);
      if (layout.has(MetricCatalog.LORA_REQUESTS)) {
        adapters = names(scheduler.adapters());
        if (file != null) {
          file.adapters(adapters);
        }
        page.set(layout.cell(MetricCatalog.LORA_REQUESTS, 0), families.wallClockSeconds());
      }
    }
    if (iteration != null) {
      to.iteration(iteration);
      exemplars.iteration(iteration, families.wallClockSeconds());
    }
  }

  /**
   * Publishes what the engine counts outside its events, and what the metrics cost. Called after each drain.
   *
   * @param counters the engine's counters
   * @param report how the drain went
   */
  public void counters(CounterPage counters, DrainReport report) {
    page.beginUpdate();
    lifecycle(EngineLifecycle.of(counters.get(EngineCounter.LIFECYCLE)));
    if (feed != null) {
      feed.afterDrain(counters, report);
    }
    if (reconciled != null) {
      reconciled.afterDrain(counters, report.eventsLost(), report.restarts());
    }
    page.endUpdate(wallMillis());
    if (file != null) {
      file.tellTime(report.nanos());
    }
  }

  /**
   * Publishes how far the loggers that were plugged in are behind.
   *
   * @param lag calls that wait for them
   * @param dropped calls that were dropped
   */
  public void plugIns(long lag, long dropped) {
    if (logStats) {
      page.beginUpdate();
      page.set(layout.cell(MetricCatalog.LOGGER_LAG, 0), lag);
      page.set(layout.cell(MetricCatalog.LOGGER_DROPPED, 0), dropped);
      page.endUpdate(wallMillis());
    }
  }

  /**
   * Publishes what the engine's device did. Called after a drain.
   *
   * @param totals since the engine was opened
   * @param rates of the last window
   */
  public void device(DeviceCounters totals, DeviceRates rates) {
    if (device != null) {
      page.beginUpdate();
      device.device(totals, rates);
      page.endUpdate(wallMillis());
    }
  }

  /** Bytes of the page of values. */
  public long bytes() {
    return page.memory().byteSize();
  }

  /** Publishes how much memory the engine holds for something. Called after a drain. */
  public void memory(MemoryArea area, long bytes) {
    if (device != null) {
      page.beginUpdate();
      device.memory(area, bytes);
      page.endUpdate(wallMillis());
    }
  }

  /** Takes the engine's values out of the registry; those of other engines stay. */
  @Override
  public void close() {
    registry.leave(this);
    if (file != null) {
      file.delete();
    }
  }

  /**
   * Says whether the engine sleeps.
   *
   * @param asleep true when it falls asleep, false when it wakes with all its memory
   * @param level 1: the weights are offloaded; 2: everything is discarded; other levels: neither
   */
  public void sleepState(boolean asleep, int level) {
    if (logStats) {
      int first = layout.cell(MetricCatalog.SLEEP_STATE, 0);
      page.beginUpdate();
      page.set(first, asleep ? 0 : 1);
      page.set(first + 1, asleep && level == 1 ? 1 : 0);
      page.set(first + 2, asleep && level == 2 ? 1 : 0);
      page.endUpdate(wallMillis());
    }
  }

  /** Adapters of the last snapshot, joined by commas; null before the first. */
  @Nullable String adapters() {
    return adapters;
  }

  PageLayout layout() {
    return layout;
  }

  Exemplars exemplars() {
    return exemplars;
  }

  MetricsPage page() {
    return page;
  }

  private static String names(List<String> all) {
    return all.size() <= MAX_ADAPTER_NAMES ? String.join(",", all)
        : String.join(",", all.subList(0, MAX_ADAPTER_NAMES)) + ",...";
  }

  private void lifecycle(EngineLifecycle state) {
    if (state == lifecycle) {
      return;
    }
    lifecycle = state;
    int first = layout.cell(MetricCatalog.ENGINE_STATE, 0);
    for (int i = 0; i < layout.children(MetricCatalog.ENGINE_STATE); i++) {
      page.set(first + i, i == state.ordinal() ? 1 : 0);
    }
  }
}
