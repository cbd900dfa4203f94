package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A logger that the tests provide as a service. */
public final class DiscoveredStatLogger implements StatLogger {
  /** Instances made in this JVM. */
  static final AtomicInteger MADE = new AtomicInteger();

  /** Running sequences of the last snapshot of engine 7, of any instance. */
  static final AtomicInteger RUNNING = new AtomicInteger(-1);

  /** Counts itself. */
  public DiscoveredStatLogger() {
    MADE.incrementAndGet();
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    if (scheduler != null && engineIndex == 7) {
      RUNNING.set(scheduler.running());
    }
  }
}
