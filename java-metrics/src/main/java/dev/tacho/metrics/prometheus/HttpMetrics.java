package dev.tacho.metrics.prometheus;

import io.prometheus.client.Collector;
import io.prometheus.client.Counter;
import io.prometheus.client.Histogram;
import io.prometheus.client.Summary;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * The families of an HTTP server, as guests of a registry: requests, their sizes and how long they took. Any thread.
 *
 * <p>Series are bounded as long as handlers are routes and not paths. Requests of {@link #LEFT_OUT} do not count: they
 * come from machines that watch.
 */
public final class HttpMetrics {
  /** Handlers whose requests do not count. */
  public static final Set<String> LEFT_OUT =
      Set.of("/metrics", "/health", "/load", "/ping", "/version", "/server_info");

  private static final Set<String> METHODS =
      Set.of("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH");
  private static final WeakHashMap<MetricsRegistry, HttpMetrics> OF = new WeakHashMap<>();
  private static final double NANOS = 1e9;

  private final Counter requests = Counter.build("http_requests", "Requests that were answered.")
      .labelNames("method", "status", "handler").create();
  private final Summary requestBytes = Summary.build("http_request_size_bytes",
      "Bytes of request bodies, as their header says, 0 without it.").labelNames("handler").create();
  private final Summary responseBytes = Summary.build("http_response_size_bytes",
      "Bytes of response bodies, as their header says, 0 without it, as for streams.").labelNames("handler").create();
  private final Histogram fineDuration = Histogram.build("http_request_duration_highr_seconds",
          "Request to the end of the response, in fine buckets.")
      .buckets(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60)
      .create();
  private final Histogram duration = Histogram.build("http_request_duration_seconds",
          "Request to the end of the response, by handler.")
      .labelNames("method", "handler").buckets(0.1, 0.5, 1).create();

  private HttpMetrics() {}

  /** Those of a registry; registered when first asked for. */
  public static HttpMetrics in(MetricsRegistry registry) {
    synchronized (OF) {
      return OF.computeIfAbsent(registry, key -> {
        HttpMetrics created = new HttpMetrics();
        created.new InOrder().register(key.collectorRegistry());
        return created;
      });
    }
  }

  /**
   * Counts a request that was answered.
   *
   * @param method such as POST; a word that is no method of HTTP counts as OTHER
   * @param handler the route that answered, not the path that was asked for
   * @param status HTTP status
   * @param nanos how long it took
   * @param bodyBytes the request's Content-Length, 0 if it has none
   * @param answerBytes the response's Content-Length, 0 if it has none
   */
  public void answered(String method, String handler, int status, long nanos, long bodyBytes, long answerBytes) {
    if (LEFT_OUT.contains(handler)) {
      return;
    }
    double seconds = nanos / NANOS;
    String known = METHODS.contains(method) ? method : "OTHER";
    requests.labels(known, status / 100 + "xx", handler).inc();
    requestBytes.labels(handler).observe((double) bodyBytes);
    responseBytes.labels(handler).observe((double) answerBytes);
    fineDuration.observe(seconds);
    duration.labels(known, handler).observe(seconds);
  }

  /** The families one after another: a registry keeps no order among its collectors. */
  private final class InOrder extends Collector implements Collector.Describable {
    @Override
    public List<MetricFamilySamples> collect() {
      List<MetricFamilySamples> families = new ArrayList<>();
      for (Collector family : List.of(requests, requestBytes, responseBytes, fineDuration, duration)) {
        families.addAll(family.collect());
      }
      return families;
    }

    @Override
    public List<MetricFamilySamples> describe() {
      return collect();
    }
  }
}
