package dev.tacho.metrics.prometheus;

import io.prometheus.client.Collector.MetricFamilySamples;
import io.prometheus.client.CounterMetricFamily;
import io.prometheus.client.GaugeMetricFamily;
import java.util.List;

/** What a sidecar says of itself, beside the families of the engines: so no answer is ever empty. One thread. */
final class SidecarMetrics {
  private int processes;
  private double closed;
  private double died;

  /** The pages of so many processes are read. */
  void reads(int number) {
    processes = number;
  }

  /** A process has closed its engines. */
  void closed() {
    closed++;
  }

  /** A process has died and left its files. */
  void died() {
    died++;
  }

  /** The families. */
  List<MetricFamilySamples> collect() {
    return List.of(
        new GaugeMetricFamily("tacho:sidecar_processes",
            "Processes whose pages the sidecar read for this answer.", processes),
        new CounterMetricFamily("tacho:sidecar_processes_gone",
            "Processes whose pages the sidecar reads no more: they closed their engines, or died.", List.of("end"))
            .addMetric(List.of("closed"), closed)
            .addMetric(List.of("died"), died));
  }
}
