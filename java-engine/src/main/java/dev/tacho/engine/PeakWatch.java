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
import org.slf4j.event.Level;

/**
 * Finds the peaks of a device, from the cache or by measuring once nothing has run for a while. Work that arrives ends
 * a measurement, which is made again the next time that nothing runs. One during which other processes used the CPUs
 * counts until there is a better one, and is not kept. Runs on a thread of its own, which looks seldom while something
 * runs, since each look takes a core from the workers.
 */
final class PeakWatch implements Runnable {
  /** How long nothing has run before it is measured. */
  static final Duration IDLE = Duration.ofSeconds(1);

  /** How long it rests at most between measurements that others disturb; it rests longer each time. */
  private static final Duration LONGEST_REST = Duration.ofMinutes(10);

  private static final Logger LOG = LoggerFactory.getLogger(PeakWatch.class);

  /** Looks within the idle time, each of which finds that nothing runs. */
  private static final int LOOKS = 20;

  /** Idle times from a look that finds something running to the next. */
  private static final int BUSY_IDLE_TIMES = 5;

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
   * @param found gets the peaks, and again when it knows them better
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

  /** Raises what is kept, if something is, to what was measured later. Any thread. */
  void raise(DevicePeaks seen) {
    String subject = bench.subject();
    DevicePeaks kept = cache.find(subject);
    if (kept != null && !kept.atLeast(seen).equals(kept)) {
      store(subject, kept.atLeast(seen));
    }
  }

  @Override
  public void run() {
    String subject = bench.subject();
    try {
      DevicePeaks peaks = cache.find(subject);
      if (peaks == null) {
        measure(subject);
      } else {
        found.accept(peaks);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (RuntimeException | OutOfMemoryError e) {
      LOG.warn("The peaks of {} cannot be measured; tacho:mfu_ratio and tacho:mbu_ratio are as they were", subject, e);
    }
  }

  /** Measures until nobody has disturbed it; until then the best result has to do. */
  private void measure(String subject) throws InterruptedException {
    Duration rest = idleTime;
    DevicePeaks best = null;
    while (awaitIdle()) {
      PeakBench.Measurement measured = bench.measure(() -> !idle.getAsBoolean() || end.getCount() == 0);
      if (measured == null) {
        continue;
      }
      best = best == null ? measured.peaks() : best.atLeast(measured.peaks());
      found.accept(best);
      if (measured.isUndisturbed()) {
        store(subject, best);
        return;
      }
      LOG.atLevel(rest.equals(idleTime) ? Level.INFO : Level.DEBUG).log(
          "While the peaks of {} were measured, others had {} % of a CPU's time: they are used, but not kept, and"
              + " measured again later",
          subject,
          Math.round(100 * (1 - measured.cpuShare())));
      rest = rest.multipliedBy(2).compareTo(LONGEST_REST) < 0 ? rest.multipliedBy(2) : LONGEST_REST;
      if (end.await(rest.toNanos(), TimeUnit.NANOSECONDS)) {
        return;
      }
    }
  }

  /** Waits until nothing has run for long enough; false at the end. */
  private boolean awaitIdle() throws InterruptedException {
    long whileIdle = idleTime.toNanos() / LOOKS;
    long pause = whileIdle;
    int looks = 0;
    while (looks < LOOKS) {
      if (end.await(pause, TimeUnit.NANOSECONDS)) {
        return false;
      }
      looks = idle.getAsBoolean() ? looks + 1 : 0;
      pause = looks == 0 ? BUSY_IDLE_TIMES * idleTime.toNanos() : whileIdle;
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
