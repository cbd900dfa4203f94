package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.page.MetricsPage;
import dev.tacho.metrics.stats.Samples;

/** A histogram in a page, found once so that an observation looks nothing up. Used by the page's writer alone. */
final class PageHistogram {
  private final MetricsPage page;
  private final int cell;
  private final double[] bounds;

  PageHistogram(MetricsPage page, PageLayout layout, MetricFamily family) {
    this(page, layout, family, 0);
  }

  PageHistogram(MetricsPage page, PageLayout layout, MetricFamily family, int child) {
    this.page = page;
    this.cell = layout.cell(family, child);
    this.bounds = layout.bounds(family);
  }

  /** Counts a value in the first bucket whose bound it does not exceed, and adds it to the sum. */
  void observe(double value) {
    observe(value, 1);
  }

  /** Observes the same value several times. */
  void observe(double value, long times) {
    page.increment(cell + bucket(bounds, value), times);
    page.add(cell + bounds.length + 1, value * times);
  }

  /** The number of the first bucket whose bound a value does not exceed; one more than there are if it exceeds all. */
  static int bucket(double[] bounds, double value) {
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
    return low;
  }

  void observe(Samples values) {
    for (int i = 0; i < values.size(); i++) {
      observe(values.get(i));
    }
  }
}
