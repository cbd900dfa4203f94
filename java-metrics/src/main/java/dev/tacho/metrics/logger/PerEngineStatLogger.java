package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes a logger that knows one engine into one for several: an instance for each engine's index. A record of an engine
 * that was not announced is dropped with a warning. The engines share a registry, so that its collector's lock keeps
 * their records apart.
 *
 * <p>Give it to one engine and {@link #recorder} to the others: then each instance logs once an interval.
 */
public final class PerEngineStatLogger implements StatLogger {
  private static final Logger LOG = LoggerFactory.getLogger(PerEngineStatLogger.class);

  private final Map<Integer, StatLogger> loggers = new TreeMap<>();

  /**
   * Makes the instances.
   *
   * @param engineIndexes the engines
   * @param factory makes the logger of an engine
   */
  public PerEngineStatLogger(Collection<Integer> engineIndexes, IntFunction<? extends StatLogger> factory) {
    engineIndexes.forEach(index -> loggers.put(index, factory.apply(index)));
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    StatLogger logger = loggers.get(engineIndex);
    if (logger == null) {
      LOG.warn("Unexpected engine_idx: {}", engineIndex);
    } else {
      logger.record(engineIndex, scheduler, iteration);
    }
  }

  @Override
  public void log(long nanos) {
    loggers.values().forEach(logger -> logger.log(nanos));
  }

  @Override
  public void close() {
    loggers.values().forEach(StatLogger::close);
  }

  /** A logger that only records here. */
  public StatLogger recorder() {
    return (index, scheduler, iteration) -> record(index, scheduler, iteration);
  }
}
