package dev.tacho.engine;

import dev.tacho.metrics.perf.DevicePeaks;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the peaks of a device, from the cache or by measuring once nothing has run for a while. Work that arrives ends
 * a measurement, which is made again the next time that nothing runs. Runs on a thread of its own.
 */
final class PeakWatch implements Runnable {
  /** How long nothing has run before it is measured. */
  static final Duration IDLE = Duration.ofSeconds(1);

  private static final Logger LOG = LoggerFactory.getLogger(PeakWatch.class);
  private static final int LOOKS = 20;
  private static final double GIGA = 1e9;

  private final PeakBench bench;
  private final PeakCache cache;
  private final Duration idleTime;
  private final BooleanSupplier idle;
  private final Consumer<DevicePeaks> found;
  private final CountDownLatch end = new CountDownLatch(1);

  /**
   * @param bench measures
   * @param cache what was measured before
   * @param idleTime how long nothing has run before it is measured
   * @param idle true while nothing runs in this JVM
   * @param found gets the peaks, once
   */
  PeakWatch(PeakBench bench, PeakCache cache, Duration idleTime, BooleanSupplier idle, Consumer<DevicePeaks> found) {
    this.bench = bench;
    this.cache = cache;
    this.idleTime = idleTime;
    this.idle = idle;
    this.found = found;
  }

  /** Ends it, a measurement included. Any thread; does not wait. */
  void close() {
    end.countDown();
  }

  @Override
  public void run() {
    String subject = bench.subject();
    DevicePeaks peaks = cache.find(subject);
    try {
      while (peaks == null && awaitIdle()) {
        peaks = bench.measure(() -> !idle.getAsBoolean() || end.getCount() == 0);
        if (peaks != null) {
          store(subject, peaks);
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException | OutOfMemoryError e) {
      LOG.warn("The peaks of {} cannot be measured; tacho:mfu_ratio and tacho:mbu_ratio stay 0", subject, e);
    }
    if (peaks != null) {
      found.accept(peaks);
    }
  }

  /** Waits until nothing has run for long enough; false at the end. */
  private boolean awaitIdle() throws InterruptedException {
    int looks = 0;
    while (looks < LOOKS) {
      if (end.await(idleTime.toNanos() / LOOKS, TimeUnit.NANOSECONDS)) {
        return false;
      }
      looks = idle.getAsBoolean() ? looks + 1 : 0;
    }
    return true;
  }

  private void store(String subject, DevicePeaks peaks) {
    LOG.info(
        "at its peak {} reaches {} GFLOP/s and reads {} GB/s",
        subject,
        Math.round(peaks.flopsPerSecond() / GIGA),
        Math.round(peaks.bytesPerSecond() / GIGA));
    try {
      cache.store(subject, peaks);
    } catch (IOException e) {
      LOG.warn("The peaks of {} cannot be remembered in {}", subject, cache.directory(), e);
    }
  }
}
