package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.ConnectorInbox;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Hands an engine's statistics to its loggers, in the order in which they were given. A logger that throws is reported
 * once and left out from then on; the others go on. Called under the collector's lock, but for {@link #close}.
 */
public final class StatLoggerManager implements StatLogger {
  private static final Logger LOG = LoggerFactory.getLogger(StatLoggerManager.class);

  private final @Nullable ConnectorInbox connectors;
  private final List<StatLogger> all;
  private final List<StatLogger> healthy;
  private final long intervalNanos;
  private long lastLogNanos;

  /**
   * A manager of some loggers.
   *
   * @param loggers the loggers
   * @param interval time between two calls of {@link StatLogger#log}; zero for none
   * @param nanos now, on the engine's monotonic clock
   */
  public StatLoggerManager(List<? extends StatLogger> loggers, Duration interval, long nanos) {
    this(loggers, interval, nanos, null);
  }

  /**
   * A manager that adds to each snapshot what connectors reported.
   *
   * @param loggers the loggers
   * @param interval time between two calls of {@link StatLogger#log}; zero for none
   * @param nanos now, on the engine's monotonic clock
   * @param connectors their reports, or null
   */
  public StatLoggerManager(List<? extends StatLogger> loggers, Duration interval, long nanos,
      @Nullable ConnectorInbox connectors) {
    this.connectors = connectors;
    this.all = List.copyOf(loggers);
    this.healthy = new ArrayList<>(loggers);
    this.intervalNanos = interval.toNanos();
    this.lastLogNanos = nanos;
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    if (connectors != null && scheduler != null) {
      connectors.moveTo(scheduler);
    }
    for (int i = 0; i < healthy.size(); i++) {
      StatLogger logger = healthy.get(i);
      try {
        logger.record(engineIndex, scheduler, iteration);
      } catch (RuntimeException | LinkageError | AssertionError e) {
        leaveOut(i--, logger, e);
      }
    }
  }

  /** Lets the loggers log if the interval is over. */
  @Override
  public void log(long nanos) {
    if (intervalNanos <= 0 || nanos - lastLogNanos < intervalNanos) {
      return;
    }
    lastLogNanos = nanos;
    for (int i = 0; i < healthy.size(); i++) {
      StatLogger logger = healthy.get(i);
      try {
        logger.log(nanos);
      } catch (RuntimeException | LinkageError | AssertionError e) {
        leaveOut(i--, logger, e);
      }
    }
  }

  /** Nanoseconds until {@link #log} has something to do; {@link Long#MAX_VALUE} if it never has. */
  public long nanosToLog(long nanos) {
    return intervalNanos <= 0 ? Long.MAX_VALUE : Math.max(0, intervalNanos - (nanos - lastLogNanos));
  }

  @Override
  public void close() {
    for (StatLogger logger : all) {
      try {
        logger.close();
      } catch (RuntimeException | LinkageError | AssertionError e) {
        LOG.warn("Stat logger {} failed to close", logger, e);
      }
    }
  }

  private void leaveOut(int index, StatLogger logger, Throwable cause) {
    healthy.remove(index);
    LOG.error("Stat logger {} failed and gets no more statistics", logger, cause);
  }
}
