package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.EngineLifecycle;
import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import org.jspecify.annotations.Nullable;

/**
 * Keeps an engine's values in its page, where scrapes find them. Made by {@link MetricsRegistry#join}; called under the
 * collector's lock alone.
 */
public final class PrometheusStatLogger implements StatLogger {
  private final EngineFamilies families;
  private final PageLayout layout;
  private final MetricsPage page;
  private final MetricsRegistry registry;
  private final boolean logStats;
  private final @Nullable RecordedCells recorded;
  private final @Nullable ReconciledCounters reconciled;
  private @Nullable String adapters;

  PrometheusStatLogger(EngineFamilies families, MetricsRegistry registry) {
    this.families = families;
    this.layout = new PageLayout(families);
    this.page = new MetricsPage(layout.cells());
    this.registry = registry;
    this.logStats = layout.has(MetricCatalog.RUNNING);
    this.reconciled = logStats ? new ReconciledCounters(page, layout) : null;
    this.recorded = logStats ? new RecordedCells(page, layout) : null;
    if (logStats) {
      page.set(layout.cell(MetricCatalog.SLEEP_STATE, 0), 1);
    }
    if (layout.has(MetricCatalog.CACHE_CONFIG)) {
      page.set(layout.cell(MetricCatalog.CACHE_CONFIG, 0), 1);
    }
    lifecycle(EngineLifecycle.STARTING);
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    RecordedCells to = recorded;
    if (to == null) {
      return;
    }
    if (scheduler != null) {
      to.scheduler(scheduler);
      if (layout.has(MetricCatalog.LORA_REQUESTS)) {
        adapters = String.join(",", scheduler.adapters());
        page.set(layout.cell(MetricCatalog.LORA_REQUESTS, 0), families.wallClockSeconds());
      }
    }
    if (iteration != null) {
      to.iteration(iteration);
    }
  }

  /**
   * Publishes what the engine counts outside its events. Called after each drain.
   *
   * @param counters the engine's counters
   * @param ringFull times that its rings were full
   * @param eventsLost records that its rings dropped
   * @param restarts times that the collection of its events began anew
   */
  public void counters(CounterPage counters, long ringFull, long eventsLost, long restarts) {
    lifecycle(EngineLifecycle.of(counters.get(EngineCounter.LIFECYCLE)));
    if (logStats) {
      int rejections = layout.cell(MetricCatalog.ADMISSION_REJECTIONS, 0);
      page.set(rejections, counters.get(EngineCounter.REJECTED_REQUESTS));
      page.set(rejections + 1, counters.get(EngineCounter.REJECTED_TOKENS));
      page.set(layout.cell(MetricCatalog.RING_FULL, 0), ringFull);
      page.set(layout.cell(MetricCatalog.EVENTS_LOST, 0), eventsLost);
      page.set(layout.cell(MetricCatalog.COLLECTOR_RESTARTS, 0), restarts);
    }
    if (reconciled != null) {
      reconciled.afterDrain(counters, eventsLost);
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
      page.set(layout.cell(MetricCatalog.LOGGER_LAG, 0), lag);
      page.set(layout.cell(MetricCatalog.LOGGER_DROPPED, 0), dropped);
    }
  }

  /** Takes the engine's values out of the registry; those of other engines stay. */
  @Override
  public void close() {
    registry.leave(this);
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
      page.set(first, asleep ? 0 : 1);
      page.set(first + 1, asleep && level == 1 ? 1 : 0);
      page.set(first + 2, asleep && level == 2 ? 1 : 0);
    }
  }

  /** Adapters of the last snapshot, joined by commas; null before the first. */
  @Nullable String adapters() {
    return adapters;
  }

  PageLayout layout() {
    return layout;
  }

  MetricsPage page() {
    return page;
  }

  private void lifecycle(EngineLifecycle state) {
    int first = layout.cell(MetricCatalog.ENGINE_STATE, 0);
    for (int i = 0; i < layout.children(MetricCatalog.ENGINE_STATE); i++) {
      page.set(first + i, i == state.ordinal() ? 1 : 0);
    }
  }
}
