package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.event.RequestId;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.Longest;
import java.util.IdentityHashMap;
import org.jspecify.annotations.Nullable;

/**
 * For each bucket of the three latencies that callers feel, the request that was last found there: of each batch of
 * outputs the longest time counts. Written by the collector, copied for a scrape under its lock; the engine does
 * nothing for it but to say what a request is called.
 */
final class Exemplars {
  private final IdentityHashMap<MetricFamily, @Nullable Exemplar[]> byFamily = new IdentityHashMap<>();
  private final IdentityHashMap<MetricFamily, double[]> bounds = new IdentityHashMap<>();

  /** Room for the buckets of an engine; none if it has no such families. */
  Exemplars(PageLayout layout) {
    for (MetricFamily family : new MetricFamily[] {MetricCatalog.TIME_TO_FIRST_TOKEN,
        MetricCatalog.INTER_TOKEN_LATENCY, MetricCatalog.E2E_LATENCY}) {
      if (layout.has(family)) {
        bounds.put(family, layout.bounds(family));
        byFamily.put(family, new @Nullable Exemplar[layout.bounds(family).length + 1]);
      }
    }
  }

  /** Takes the longest times of a batch. */
  void iteration(IterationStats stats, double wallClockSeconds) {
    put(MetricCatalog.TIME_TO_FIRST_TOKEN, stats.longestTimeToFirstToken(), wallClockSeconds);
    put(MetricCatalog.INTER_TOKEN_LATENCY, stats.longestInterTokenLatency(), wallClockSeconds);
    put(MetricCatalog.E2E_LATENCY, stats.longestEndToEnd(), wallClockSeconds);
  }

  private void put(MetricFamily family, Longest longest, double wallClockSeconds) {
    RequestId request = longest.requestId();
    @Nullable Exemplar[] buckets = byFamily.get(family);
    double[] upper = bounds.get(family);
    if (request != null && buckets != null && upper != null) {
      buckets[PageHistogram.bucket(upper, longest.seconds())] =
          new Exemplar(request, longest.seconds(), wallClockSeconds);
    }
  }

  /** The exemplar of a bucket, or null. */
  @Nullable Exemplar get(MetricFamily family, int bucket) {
    @Nullable Exemplar[] buckets = byFamily.get(family);
    return buckets == null ? null : buckets[bucket];
  }

  /** Copies all into one of the same engine. */
  void copyTo(Exemplars other) {
    byFamily.forEach((family, from) -> {
      @Nullable Exemplar[] to = other.byFamily.get(family);
      if (to != null) {
        System.arraycopy(from, 0, to, 0, from.length);
      }
    });
  }

  /**
   * An observation and whose it was.
   *
   * @param requestId the request
   * @param seconds what was observed
   * @param wallClockSeconds when, in seconds since 1970
   */
  record Exemplar(RequestId requestId, double seconds, double wallClockSeconds) {
    /** Writes it in the syntax of OpenMetrics 1.0.0, to follow the value of a bucket. */
    void write(TextBuffer out) {
      StringBuilder id = new StringBuilder();
      ExpositionWriter.escapeValue(id, requestId.toString());
      long millis = Math.round(wallClockSeconds * 1000);
      out.put(" # {request_id=\"").put(id.toString()).put("\"} ").put(seconds).put(' ')
          .put(Long.toString(millis / 1000)).put('.').put(Long.toString(1000 + millis % 1000).substring(1));
    }
  }
}
