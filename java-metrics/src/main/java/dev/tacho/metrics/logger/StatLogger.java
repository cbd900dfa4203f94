package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import org.jspecify.annotations.Nullable;

/**
 * Takes an engine's statistics: the extension point for publishing them elsewhere. Give one to {@code
 * EngineMetricsOptions}; or name a public class with a constructor without arguments in {@code META-INF/services}: each
 * engine then makes an instance of its own, on a thread of its own.
 *
 * <p>All methods run on the collector's thread or on a thread that asked for a drain, one at a time, and must return
 * soon: they hold up every engine's metrics (never the engines). Both statistics are reused: take numbers out, keep no
 * reference. A logger that throws is reported once and not called again.
 */
public interface StatLogger extends AutoCloseable {
  /**
   * Takes what happened.
   *
   * @param engineIndex the engine
   * @param scheduler state after a step or a change, or null
   * @param iteration what a batch of outputs brought, or null
   */
  void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration);

  /**
   * Called once every log interval.
   *
   * @param nanos now, on the engine's monotonic clock
   */
  default void log(long nanos) {}

  /** The engine has left. */
  @Override
  default void close() {}
}
