package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.CounterPage;
import dev.tacho.metrics.page.EngineCounter;
import dev.tacho.metrics.page.MetricsPage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Puts counters right after events were lost. From the first loss on they show the totals that the engine keeps beside
 * its events: tokens, preemptions, sequences accepted and ended stay exact; histograms and cache counters lack what was
 * lost. An engine that keeps no totals is left alone. Used by the page's writer after each drain, before anybody can
 * read.
 */
final class ReconciledCounters {
  private static final Logger LOG = LoggerFactory.getLogger(ReconciledCounters.class);

  private static final EngineCounter[] TOTALS = {
    EngineCounter.PROMPT_TOKENS,
    EngineCounter.GENERATION_TOKENS,
    EngineCounter.PREEMPTIONS,
    EngineCounter.FINISHED_STOP,
    EngineCounter.FINISHED_LENGTH,
    EngineCounter.FINISHED_ABORT,
    EngineCounter.FINISHED_ERROR,
    EngineCounter.FINISHED_REPETITION,
    EngineCounter.ACCEPTED
  };

  private final MetricsPage page;
  private final int engineIndex;
  private final int[] cells;
  private final double[] shown = new double[TOTALS.length];
  private boolean active;

  ReconciledCounters(MetricsPage page, PageLayout layout) {
    this.page = page;
    this.engineIndex = layout.engineIndex();
    int success = layout.cell(MetricCatalog.REQUEST_SUCCESS, 0);
    this.cells = new int[] {
      layout.cell(MetricCatalog.PROMPT_TOKENS, 0),
      layout.cell(MetricCatalog.GENERATION_TOKENS, 0),
      layout.cell(MetricCatalog.PREEMPTIONS, 0),
      success,
      success + 1,
      success + 2,
      success + 3,
      success + 4,
      layout.cell(MetricCatalog.REQUESTS_ACCEPTED, 0)
    };
  }

  /**
   * Overwrites what the events added, if events were lost.
   *
   * @param totals the engine's
   * @param eventsLost records lost so far
   * @param restarts times that reading began anew, which loses what was under way
   */
  void afterDrain(CounterPage totals, long eventsLost, long restarts) {
    if (!active) {
      if (eventsLost + restarts == 0 || totals.get(EngineCounter.ACCEPTED) == 0) {
        return;
      }
      active = true;
      LOG.warn("Engine {} lost {} events, and its events were read anew {} times; its counters follow its own totals"
          + " from here on, histograms lack what was lost", engineIndex, eventsLost, restarts);
    }
    for (int i = 0; i < cells.length; i++) {
      // A total may step back when a reason is corrected; a counter may not.
      shown[i] = Math.max(shown[i], (double) totals.get(TOTALS[i]));
      page.set(cells[i], shown[i]);
    }
  }
}
