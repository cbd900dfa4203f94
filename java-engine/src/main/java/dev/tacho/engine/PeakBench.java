package dev.tacho.engine;

import dev.tacho.metrics.perf.DevicePeaks;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** Finds out what the device can do at its peak. */
interface PeakBench {
  /** What the result holds for, in words: the same text, the same peaks. */
  String subject();

  /**
   * What was measured.
   *
   * @param peaks what the device did at its best
   * @param cpuShare CPU time over time of the thread that got least in the best pass: below 1 if others had the CPU
   */
  record Measurement(DevicePeaks peaks, double cpuShare) {
    private static final double UNDISTURBED = 0.95;

    /** True if nobody else used the CPUs, so that the peaks are the device's. */
    boolean isUndisturbed() {
      return cpuShare >= UNDISTURBED;
    }
  }

  /**
   * Measures. Takes some tenths of a second and the threads that it needs. One measurement at a time in this JVM:
   * another waits.
   *
   * @param workArrived asked every few milliseconds; true ends the measurement
   * @return null if it was ended
   */
  @Nullable Measurement measure(BooleanSupplier workArrived);
}
