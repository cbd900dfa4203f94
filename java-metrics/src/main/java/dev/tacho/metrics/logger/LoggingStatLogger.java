package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.Level;

/**
 * Writes a line about an engine each interval: throughput since the last line, and the queues and the cache as of the
 * last snapshot; then a line for each of speculation, transfers, graphs and work that has something to say. Called
 * under the collector's lock.
 */
public final class LoggingStatLogger implements StatLogger {
  private final String prefix;
  private final BiConsumer<Level, String> lines;
  private final LogWindow window;
  private QueueState state = QueueState.EMPTY;

  /**
   * A logger that writes through SLF4J.
   *
   * @param engineIndex the engine
   * @param options what the lines are about
   * @param nanos now, on the engine's monotonic clock
   */
  public LoggingStatLogger(int engineIndex, LogOptions options, long nanos) {
    this(engineIndex, options, nanos, LogWindow.SLF4J);
  }

  /**
   * A logger that hands its lines over.
   *
   * @param engineIndex the engine
   * @param options what the lines are about
   * @param nanos now, on the engine's monotonic clock
   * @param lines takes level and text
   */
  public LoggingStatLogger(int engineIndex, LogOptions options, long nanos, BiConsumer<Level, String> lines) {
    this.prefix = LogWindow.enginePrefix(engineIndex);
    this.lines = lines;
    this.window = new LogWindow(options, prefix, true, nanos, lines);
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    window.record(scheduler, iteration);
    if (scheduler != null) {
      state = QueueState.of(scheduler);
      IterationDetails details = scheduler.details();
      if (details != null) {
        window.details(prefix, details, scheduler.kvCacheUsage());
      }
    }
  }

  @Override
  public void log(long nanos) {
    window.log(nanos, state);
  }

  /**
   * Says how large the KV cache is, at debug level.
   *
   * @param blocks blocks of the cache; nothing is said of 0
   */
  public void initialized(int blocks) {
    if (blocks > 0) {
      lines.accept(Level.DEBUG,
          prefix + "vllm cache_config_info with initialization after num_gpu_blocks is: " + blocks);
    }
  }
}
