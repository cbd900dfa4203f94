package dev.tacho.metrics.collector;

import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.logger.StatLoggerManager;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.ring.EventRing;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One engine's part in the {@link MetricsCollector}: its two rings, what reads them, and where the statistics go. The
 * writers belong to the engine's threads; everything else happens under the collector's lock.
 *
 * <p>If reading fails, the unread records are dropped and reading begins anew, once; after a second failure the
 * engine's events are no longer read, and its rings drop them.
 */
public final class EngineFeed {
  private static final Logger LOG = LoggerFactory.getLogger(EngineFeed.class);

  private final int engineIndex;
  private final @Nullable PerfEstimator estimator;
  private final StatLoggerManager loggers;
  private final AfterDrain afterDrain;
  private final EventRing engineRing;
  private final EventRing outputRing;
  private EventSink sink;
  private int restarts;
  private boolean failed;

  /** Told after each drain of an engine. */
  @FunctionalInterface
  public interface AfterDrain {
    /**
     * Takes the state of the engine's rings.
     *
     * @param ringFull times that they were full
     * @param eventsLost records that they dropped
     * @param restarts times that reading them began anew
     */
    void drained(long ringFull, long eventsLost, long restarts);
  }

  /**
   * A feed with rings.
   *
   * @param engineIndex handed to the loggers
   * @param estimator of each step's work, or null
   * @param loggers where the statistics go
   * @param afterDrain told after each drain
   * @param engineRing ring of the engine thread
   * @param outputRing ring of the output thread
   */
  public EngineFeed(int engineIndex, @Nullable PerfEstimator estimator, StatLoggerManager loggers,
      AfterDrain afterDrain, EventRing engineRing, EventRing outputRing) {
    this.engineIndex = engineIndex;
    this.estimator = estimator;
    this.loggers = loggers;
    this.afterDrain = afterDrain;
    this.engineRing = engineRing;
    this.outputRing = outputRing;
    this.sink = new EventSink(engineIndex, estimator, loggers);
  }

  /** A new writer for the engine thread. */
  public EventWriter engineWriter() {
    return EventWriter.into(engineRing);
  }

  /** A new writer for the output thread. */
  public EventWriter outputWriter() {
    return EventWriter.into(outputRing);
  }

  /** Reads what both rings hold now. */
  void drain() {
    if (!failed) {
      try {
        read();
      } catch (RuntimeException e) {
        recover(e);
      }
    }
    afterDrain.drained(engineRing.fullCount() + outputRing.fullCount(),
        engineRing.lostRecords() + outputRing.lostRecords(), restarts);
  }

  void log(long nanos) {
    loggers.log(nanos);
  }

  void close() {
    loggers.close();
  }

  private void read() {
    // Downstream first: every effect in this snapshot has its cause in it.
    long outputEnd = outputRing.tailAcquire();
    long engineEnd = engineRing.tailAcquire();
    engineRing.prepareSpare();
    outputRing.prepareSpare();
    engineRing.drain(sink::engineRecord, engineEnd);
    outputRing.drain(sink::outputRecord, outputEnd);
    sink.endOfDrain();
  }

  private void recover(RuntimeException cause) {
    failed = restarts > 0;
    if (failed) {
      LOG.error("Events of engine {} failed again and are no longer read", engineIndex, cause);
      return;
    }
    restarts++;
    LOG.error("Events of engine {} could not be read; those not read yet are dropped", engineIndex, cause);
    engineRing.discard(engineRing.tailAcquire());
    outputRing.discard(outputRing.tailAcquire());
    sink = new EventSink(engineIndex, estimator, loggers);
  }
}
