package dev.tacho.metrics.perf;

/**
 * Where the collector reads what an engine's device has done. Called on the collector's thread or on a thread that
 * asked for a drain, one at a time, some forty times a second; must not block, and may be called while a step runs.
 */
@FunctionalInterface
public interface CounterSource {
  /**
   * Writes the totals since the engine was opened; none may ever be smaller than before.
   *
   * @param counters takes them; those that are not set keep what they were
   */
  void read(DeviceCounters counters);
}
