package dev.tacho.metrics;

import dev.tacho.metrics.perf.CounterSource;
import dev.tacho.metrics.perf.DeviceCounters;
import dev.tacho.metrics.perf.DevicePeaks;
import dev.tacho.metrics.perf.DeviceRates;
import dev.tacho.metrics.prometheus.PrometheusStatLogger;
import dev.tacho.metrics.stats.MemoryArea;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where an engine says what its device does. Any thread; what is said is on the page after the next drain. Without
 * statistics it is not published.
 */
public final class DeviceFeed {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceFeed.class);
  private static final MemoryArea[] AREAS = MemoryArea.values();

  private final PrometheusStatLogger published;
  private final DeviceCounters totals;
  private final DeviceRates rates;
  private final AtomicLongArray memory = new AtomicLongArray(AREAS.length);
  // Under the collector's lock.
  private final long[] publishedMemory = new long[AREAS.length];
  private volatile @Nullable CounterSource source;
  private final AtomicReference<@Nullable DevicePeaks> peaks = new AtomicReference<>();

  DeviceFeed(PrometheusStatLogger published, int workers, long nanos) {
    this.published = published;
    this.totals = new DeviceCounters(workers);
    this.rates = new DeviceRates(nanos);
  }

  /** Polls these counters from now on. A source that throws is reported and not polled again. */
  public void counters(CounterSource newSource) {
    source = newSource;
  }

  /** Says what the device can do at least: given by option, or measured. Of several the largest counts. */
  public void peaks(DevicePeaks least) {
    peaks.accumulateAndGet(least, (known, found) -> known == null ? found : known.atLeast(found));
  }

  /** Says how many bytes outside the heap the engine holds for something now. */
  public void memory(MemoryArea area, long bytes) {
    if (bytes < 0) {
      throw new IllegalArgumentException(area.label() + " of " + bytes + " bytes: must not be negative");
    }
    memory.set(area.ordinal(), bytes);
  }

  /** Publishes; under the collector's lock. */
  void publish(long nanos) {
    CounterSource polled = source;
    if (polled != null) {
      try {
        polled.read(totals);
      } catch (RuntimeException | LinkageError | AssertionError e) {
        source = null;
        LOG.error("The counters of a device failed and are no longer read", e);
      }
      rates.update(nanos, totals, peaks.get());
      published.device(totals, rates);
    }
    for (MemoryArea area : AREAS) {
      long bytes = memory.get(area.ordinal());
      if (bytes != publishedMemory[area.ordinal()]) {
        publishedMemory[area.ordinal()] = bytes;
        published.memory(area, bytes);
      }
    }
  }
}
