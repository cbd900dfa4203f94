package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.SchedulerStats;
import java.util.function.Consumer;

/** A line that follows an engine's line when it has something to say. Called under the collector's lock. */
interface LogPart {
  /** Takes a snapshot. */
  void record(SchedulerStats stats);

  /**
   * Says what happened since the last time, if anything did, and begins anew.
   *
   * @param nanos now, on the engine's monotonic clock
   * @param line takes the text
   */
  void log(long nanos, Consumer<String> line);
}
