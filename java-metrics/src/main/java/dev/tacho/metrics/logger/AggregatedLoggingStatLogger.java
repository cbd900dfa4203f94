package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.event.Level;

/**
 * Writes one line about several engines each interval: sums of the throughputs and queues, the mean of the cache usage
 * over all engines, one that never reported counted as 0. The engines share a registry, so that its collector's lock
 * keeps their records apart.
 *
 * <p>Give it to one engine as its logger and {@link #recorder} to the others: then it logs once an interval.
 */
public final class AggregatedLoggingStatLogger implements StatLogger {
  private final Map<Integer, QueueState> states = new TreeMap<>();
  private final BiConsumer<Level, String> lines;
  private final LogWindow window;

  /**
   * A logger that writes through SLF4J.
   *
   * @param engineIndexes the engines
   * @param options what the line is about; estimated work is never shown
   * @param nanos now, on the engines' monotonic clock
   */
  public AggregatedLoggingStatLogger(Collection<Integer> engineIndexes, LogOptions options, long nanos) {
    this(engineIndexes, options, nanos, LogWindow.SLF4J);
  }

  /**
   * A logger that hands its lines over.
   *
   * @param engineIndexes the engines
   * @param options what the line is about; estimated work is never shown
   * @param nanos now, on the engines' monotonic clock
   * @param lines takes level and text
   */
  public AggregatedLoggingStatLogger(Collection<Integer> engineIndexes, LogOptions options, long nanos,
      BiConsumer<Level, String> lines) {
    engineIndexes.forEach(index -> states.put(index, QueueState.EMPTY));
    this.lines = lines;
    this.window = new LogWindow(options, states.size() + " Engines Aggregated: ", false, nanos, lines);
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    if (!states.containsKey(engineIndex)) {
      lines.accept(Level.WARN, "Unexpected engine_idx: " + engineIndex);
      return;
    }
    window.record(scheduler, iteration);
    if (scheduler != null) {
      states.put(engineIndex, QueueState.of(scheduler));
      IterationDetails details = scheduler.details();
      if (details != null) {
        window.details(LogWindow.enginePrefix(engineIndex), details, scheduler.kvCacheUsage());
      }
    }
  }

  @Override
  public void log(long nanos) {
    QueueState sum = states.values().stream().reduce(QueueState.EMPTY, QueueState::plus);
    window.log(nanos, sum.withUsage(sum.kvCacheUsage() / Math.max(1, states.size())));
  }

  /** A logger that only records here. */
  public StatLogger recorder() {
    return (index, scheduler, iteration) -> record(index, scheduler, iteration);
  }

  /**
   * Says how large the KV caches are.
   *
   * @param blocks blocks of each; nothing is said of 0
   */
  public void initialized(int blocks) {
    if (blocks > 0) {
      lines.accept(Level.INFO, states.size()
          + " Engines: vllm cache_config_info with initialization after num_gpu_blocks is: " + blocks);
    }
  }
}
