package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.collector.DrainReport;
import dev.tacho.metrics.event.RecordCost;
import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.MetricsPage;

/** The cells of what is published after each drain, found once. Used by the page's writer. */
final class FeedCells {
  private static final double NANOS = 1e9;

  private final MetricsPage page;
  private final int rejections;
  private final int ringFull;
  private final int eventsLost;
  private final int restarts;
  private final int events;
  private final int recordSeconds;
  private final int drainSeconds;
  private final int sinceLastStep;
  private final int oldestRunning;
  private final int oldestWaiting;

  FeedCells(MetricsPage page, PageLayout layout) {
    this.page = page;
    rejections = layout.cell(MetricCatalog.ADMISSION_REJECTIONS, 0);
    ringFull = layout.cell(MetricCatalog.RING_FULL, 0);
    eventsLost = layout.cell(MetricCatalog.EVENTS_LOST, 0);
    restarts = layout.cell(MetricCatalog.COLLECTOR_RESTARTS, 0);
    events = layout.cell(MetricCatalog.METRICS_EVENTS, 0);
    recordSeconds = layout.cell(MetricCatalog.RECORD_SECONDS, 0);
    drainSeconds = layout.cell(MetricCatalog.DRAIN_SECONDS, 0);
    sinceLastStep = layout.cell(MetricCatalog.SECONDS_SINCE_LAST_STEP, 0);
    oldestRunning = layout.cell(MetricCatalog.OLDEST_RUNNING, 0);
    oldestWaiting = layout.cell(MetricCatalog.OLDEST_WAITING, 0);
  }

  void afterDrain(CounterPage counters, DrainReport report) {
    page.set(rejections, counters.get(EngineCounter.REJECTED_REQUESTS));
    page.set(rejections + 1, counters.get(EngineCounter.REJECTED_TOKENS));
    page.set(ringFull, report.ringFull());
    page.set(eventsLost, report.eventsLost());
    page.set(restarts, report.restarts());
    page.set(events, report.events());
    page.set(recordSeconds, (report.events() + report.eventsLost()) * RecordCost.secondsPerEvent());
    page.set(drainSeconds, report.drainNanos() / NANOS);
    page.set(sinceLastStep, report.secondsSince(report.lastStepNanos()));
    page.set(oldestRunning, report.secondsSince(report.longestRunningNanos()));
    page.set(oldestWaiting, report.secondsSince(report.longestWaitingNanos()));
  }
}
