package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.stats.OffloadSeries;
import dev.tacho.metrics.stats.OffloadStats;
import dev.tacho.metrics.stats.Samples;
import java.util.List;

/** Writes what an offloading connector reported into the page. Used by the page's writer. */
final class OffloadCells {
  private static final OffloadSeries[] SERIES = OffloadSeries.values();

  private final MetricsPage page;
  private final PageLayout layout;
  private final boolean present;
  private boolean configShown;

  OffloadCells(MetricsPage page, PageLayout layout) {
    this.page = page;
    this.layout = layout;
    this.present = layout.has(OffloadFamilies.CONFIG) || layout.has(OffloadFamilies.SIMPLE_CONFIG);
  }

  /** Takes the reports that came with a snapshot; a child that the engine did not announce is passed over. */
  void scheduler(OffloadStats stats) {
    if (!present) {
      return;
    }
    showConfig();
    for (OffloadSeries series : SERIES) {
      MetricFamily family = OffloadFamilies.of(series);
      int children = layout.has(family) ? Math.min(layout.children(family), stats.children(series)) : 0;
      for (int child = 0; child < children; child++) {
        if (stats.isTouched(series, child)) {
          write(family, series, child, stats);
        }
      }
    }
  }

  private void write(MetricFamily family, OffloadSeries series, int child, OffloadStats stats) {
    int cell = layout.cell(family, child);
    switch (series.kind()) {
      case COUNT -> page.add(cell, stats.value(series, child));
      case LEVEL -> page.set(cell, stats.value(series, child));
      case SAMPLE -> {
        Samples samples = stats.samples(series, child);
        new PageHistogram(page, layout, family, child).observe(samples);
      }
    }
    if (family.onFirstUse()) {
      page.increment(layout.reports(family, child));
    }
  }

  private void showConfig() {
    if (configShown) {
      return;
    }
    configShown = true;
    for (MetricFamily config : List.of(OffloadFamilies.CONFIG, OffloadFamilies.SIMPLE_CONFIG)) {
      int children = layout.has(config) ? layout.children(config) : 0;
      for (int child = 0; child < children; child++) {
        page.set(layout.cell(config, child), 1);
        page.increment(layout.reports(config, child));
      }
    }
  }
}
