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
  /** Beyond so much that waits for pick-ups, the output thread has failed, and nobody waits for it any more. */
  private static final long MAX_WAITING_BYTES = 4 << 20;

  private final int engineIndex;
  private final @Nullable PerfEstimator estimator;
  private final StatLoggerManager loggers;
  private final AfterDrain afterDrain;
  private final EventRing engineRing;
  private final EventRing outputRing;
  private final RingPace enginePace;
  private final RingPace outputPace;
  private EventSink sink;
  private int restarts;
  private boolean failed;
  private long knownLost;
  private long events;
  private long drainNanos;

  /** Told after each drain of an engine. */
  @FunctionalInterface
  public interface AfterDrain {
    /** Takes the state of the engine's feed. */
    void drained(DrainReport report);
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
    long now = System.nanoTime();
    this.enginePace = new RingPace(engineRing, now);
    this.outputPace = new RingPace(outputRing, now);
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

  /** Reads what both rings hold now, up to a step that has not been picked up. */
  void drain() {
    drain(true);
  }

  /** Reads everything, as no pick-up will follow. */
  void drainForTheLastTime() {
    drain(false);
  }

  private void drain(boolean waitForPickUps) {
    long begin = System.nanoTime();
    if (!failed) {
      try {
        read(waitForPickUps);
      } catch (RuntimeException e) {
        recover(e);
      }
    }
    long end = System.nanoTime();
    drainNanos += end - begin;
    afterDrain.drained(new DrainReport(end, engineRing.fullCount() + outputRing.fullCount(),
        engineRing.lostRecords() + outputRing.lostRecords(), restarts, events, drainNanos, sink.lastStepNanos(),
        sink.longestRunningNanos(), sink.longestWaitingNanos()));
  }

  void log(long nanos) {
    loggers.log(nanos);
  }

  /** How long both rings and the loggers can be left alone, after a drain. */
  long restNanos(long now) {
    long rest = Math.min(enginePace.restNanos(now), outputPace.restNanos(now));
    return Math.clamp(
        loggers.nanosToLog(now), RingPace.SHORTEST_NANOS, failed ? RingPace.LONGEST_NANOS : rest);
  }

  void close() {
    loggers.close();
  }

  private void read(boolean waitForPickUps) {
    // Downstream first: every effect in this snapshot has its cause in it.
    long outputEnd = outputRing.tailAcquire();
    long engineEnd = engineRing.tailAcquire();
    engineRing.prepareSpare();
    outputRing.prepareSpare();
    sink.beginDrain(waitForPickUps && engineEnd - engineRing.headAcquire() <= MAX_WAITING_BYTES);
    long lost = engineRing.lostRecords();
    if (lost != knownLost) {
      knownLost = lost;
      sink.recordsLost();
    }
    events += outputRing.drain(sink::outputRecord, outputEnd);
    events += engineRing.drain(sink::engineRecord, engineEnd);
    sink.endDrain();
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
