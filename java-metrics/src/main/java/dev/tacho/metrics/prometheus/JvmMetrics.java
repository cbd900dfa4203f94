package dev.tacho.metrics.prometheus;

import io.prometheus.client.hotspot.DefaultExports;
import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;

/** The JVM's own families (memory, garbage collection, threads, classes, process) as guests of a registry. */
public final class JvmMetrics {
  private static final Set<MetricsRegistry> DONE = Collections.newSetFromMap(new WeakHashMap<>());

  private JvmMetrics() {}

  /** Registers them, once for each registry. Any thread. */
  public static void registerIn(MetricsRegistry registry) {
    synchronized (DONE) {
      if (DONE.add(registry)) {
        DefaultExports.register(registry.collectorRegistry());
      }
    }
  }
}
