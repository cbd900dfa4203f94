package dev.tacho.engine;

import dev.tacho.metrics.perf.DevicePeaks;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** Finds out what the device can do at its peak. */
interface PeakBench {
  /** What the result holds for, in words: the same text, the same peaks. */
  String subject();

  /**
   * Measures. Takes some tenths of a second and the threads that it needs. One measurement at a time in this JVM:
   * another waits.
   *
   * @param workArrived asked every few milliseconds; true ends the measurement
   * @return null if it was ended
   */
  @Nullable DevicePeaks measure(BooleanSupplier workArrived);
}
