package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.stats.Samples;

/** A histogram in a page, found once so that an observation looks nothing up. Used by the page's writer alone. */
final class PageHistogram {
  private final MetricsPage page;
  private final int cell;
  private final double[] bounds;

  PageHistogram(MetricsPage page, PageLayout layout, MetricFamily family) {
    this.page = page;
    this.cell = layout.cell(family, 0);
    this.bounds = layout.bounds(family);
  }

  /** Counts a value in the first bucket whose bound it does not exceed, and adds it to the sum. */
  void observe(double value) {
    int low = 0;
    int high = bounds.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (value <= bounds[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    page.increment(cell + low);
    page.add(cell + bounds.length + 1, value);
  }

  void observe(Samples values) {
    for (int i = 0; i < values.size(); i++) {
      observe(values.get(i));
    }
  }
}
