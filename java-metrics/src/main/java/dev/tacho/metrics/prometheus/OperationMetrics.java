package dev.tacho.metrics.prometheus;

import io.prometheus.client.Collector;
import io.prometheus.client.Gauge;
import io.prometheus.client.Histogram;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

/**
 * The families of a server's routes for operations: how long calls took, failed ones too, and how many are in flight.
 * Guests of a registry, registered with the first call. Any thread.
 */
public final class OperationMetrics {
  private static final WeakHashMap<MetricsRegistry, Map<Routes, OperationMetrics>> OF = new WeakHashMap<>();
  private static final double NANOS = 1e9;

  private final Histogram duration;
  private final Gauge inFlight;

  /** Groups of routes that have families of their own. */
  public enum Routes {
    /** Sleep and wake: sleep, release_kv_cache_memory, wake. */
    SLEEP_MODE("vllm:sleep_mode_", "sleep", "release_kv_cache_memory", "wake"),
    /** Update of the weights: init, shutdown, start, start_draft, update, finish. */
    WEIGHT_UPDATE("vllm:rl_weight_update_", "init", "shutdown", "start", "start_draft", "update", "finish");

    private final String prefix;
    @SuppressWarnings("ImmutableEnumChecker") // List.of
    private final List<String> operations;

    Routes(String prefix, String... operations) {
      this.prefix = prefix;
      this.operations = List.of(operations);
    }

    /** Names of the operations. */
    public List<String> operations() {
      return operations;
    }

    /** Name of the histogram of durations. */
    String durationName() {
      return prefix + "operation_duration_seconds";
    }

    /** Name of the gauge of calls in flight. */
    String inFlightName() {
      return prefix + "operations_in_flight";
    }
  }

  /** A call that has begun. */
  public interface Call extends AutoCloseable {
    /** The call ended, well or not. */
    @Override
    void close();
  }

  private OperationMetrics(MetricsRegistry registry, Routes routes) {
    duration = Histogram.build(routes.durationName(), "Time that a call of a route took, whether it failed or not.")
        .labelNames("operation").buckets(0.01, 0.1, 1, 10, 30, 60, 120, 300, 600).create();
    inFlight = Gauge.build(routes.inFlightName(), "Calls of a route that have not ended.").labelNames("operation")
        .create();
    new InOrder().register(registry.collectorRegistry());
  }

  /**
   * A call begins; close what this returns when it ends.
   *
   * @param registry whose guests the families are
   * @param routes the group that the route belongs to
   * @param operation one of its operations
   * @throws IllegalArgumentException if it is none of them
   */
  public static Call begin(MetricsRegistry registry, Routes routes, String operation) {
    if (!routes.operations().contains(operation)) {
      throw new IllegalArgumentException("operation \"" + operation + "\": must be one of " + routes.operations());
    }
    OperationMetrics metrics;
    synchronized (OF) {
      metrics = OF.computeIfAbsent(registry, key -> new EnumMap<>(Routes.class))
          .computeIfAbsent(routes, key -> new OperationMetrics(registry, key));
    }
    long start = System.nanoTime();
    metrics.inFlight.labels(operation).inc();
    return () -> {
      metrics.inFlight.labels(operation).dec();
      metrics.duration.labels(operation).observe((System.nanoTime() - start) / NANOS);
    };
  }

  /** Both families one after the other: a registry keeps no order among its collectors. */
  private final class InOrder extends Collector implements Collector.Describable {
    @Override
    public List<MetricFamilySamples> collect() {
      List<MetricFamilySamples> families = new ArrayList<>(duration.collect());
      families.addAll(inFlight.collect());
      return families;
    }

    @Override
    public List<MetricFamilySamples> describe() {
      return collect();
    }
  }
}
