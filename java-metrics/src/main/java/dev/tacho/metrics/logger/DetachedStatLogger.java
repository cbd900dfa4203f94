package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs somebody else's logger on a thread of its own, on copies of the statistics, so that one that blocks or throws
 * holds up nobody. Up to {@value #CAPACITY} calls may wait; beyond that they are dropped and counted. A logger that
 * throws is reported once and called no more, except to be closed.
 */
public final class DetachedStatLogger implements StatLogger {
  /** Calls that may wait. */
  public static final int CAPACITY = 4096;

  private static final Logger LOG = LoggerFactory.getLogger(DetachedStatLogger.class);

  private final StatLogger logger;
  private final BlockingQueue<Runnable> calls = new ArrayBlockingQueue<>(CAPACITY);
  private final AtomicLong dropped = new AtomicLong();
  private final Thread thread;
  private volatile boolean closed;

  /** Starts the thread, a daemon. */
  public DetachedStatLogger(StatLogger logger) {
    this.logger = logger;
    this.thread = new Thread(this::run, "tacho-stat-logger");
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * The loggers that are provided as services under {@link StatLogger}, a new instance of each; one that cannot be made
   * is reported and left out.
   */
  public static List<StatLogger> discover() {
    List<StatLogger> found = new ArrayList<>();
    Iterator<StatLogger> services = ServiceLoader.load(StatLogger.class).iterator();
    boolean more = true;
    while (more) {
      try {
        more = services.hasNext();
        if (more) {
          found.add(services.next());
        }
      } catch (ServiceConfigurationError e) {
        LOG.error("A stat logger on the class path could not be made and is left out", e);
      }
    }
    return found;
  }

  @Override
  public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    SchedulerStats schedulerCopy = scheduler == null ? null : scheduler.copy();
    IterationStats iterationCopy = iteration == null ? null : iteration.copy();
    offer(() -> logger.record(engineIndex, schedulerCopy, iterationCopy));
  }

  @Override
  public void log(long nanos) {
    offer(() -> logger.log(nanos));
  }

  /** Lets the thread finish what waits, close the logger and end; does not wait for it. */
  @Override
  public void close() {
    closed = true;
    if (!calls.offer(() -> { })) {
      thread.interrupt();
    }
  }

  /** Calls that wait. */
  public long lag() {
    return calls.size();
  }

  /** Calls that were dropped because too many waited. */
  public long dropped() {
    return dropped.get();
  }

  private void offer(Runnable call) {
    if (!closed && !calls.offer(call)) {
      dropped.incrementAndGet();
    }
  }

  private void run() {
    boolean healthy = true;
    while (!closed || !calls.isEmpty()) {
      try {
        Runnable call = calls.take();
        if (healthy) {
          call.run();
        }
      } catch (InterruptedException e) {
        LOG.warn("Stat logger {} is behind when it is closed", logger);
        break;
      } catch (RuntimeException | LinkageError | AssertionError e) {
        healthy = false;
        LOG.error("Stat logger {} failed and gets no more statistics", logger, e);
      }
    }
    try {
      logger.close();
    } catch (RuntimeException | LinkageError | AssertionError e) {
      LOG.warn("Stat logger {} failed to close", logger, e);
    }
  }
}
