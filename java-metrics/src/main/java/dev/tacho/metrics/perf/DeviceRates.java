package dev.tacho.metrics.perf;

import org.jspecify.annotations.Nullable;

/** Ratios of what a device did to what it could have done, over windows of at least a second. One thread. */
public final class DeviceRates {
  private static final long WINDOW_NANOS = 1_000_000_000;
  private static final double NANOS = 1e9;

  private long startNanos;
  private long flops;
  private long bytes;
  private long busyNanos;
  private double mfu;
  private double mbu;
  private double busy;

  /**
   * Ratios of 0, and a window that begins now.
   *
   * @param nanos now, monotonic
   */
  public DeviceRates(long nanos) {
    startNanos = nanos;
  }

  /**
   * Takes the totals; if the window is over, the ratios become the window's, and another begins.
   *
   * @param nanos now, monotonic
   * @param totals of the device
   * @param peaks of the device, null while they are not known
   */
  public void update(long nanos, DeviceCounters totals, @Nullable DevicePeaks peaks) {
    long elapsed = nanos - startNanos;
    if (elapsed < WINDOW_NANOS) {
      return;
    }
    double seconds = elapsed / NANOS;
    long moved = totals.readBytes() + totals.writeBytes();
    mfu = peaks == null ? 0 : (totals.flops() - flops) / seconds / peaks.flopsPerSecond();
    mbu = peaks == null ? 0 : (moved - bytes) / seconds / peaks.bytesPerSecond();
    busy = Math.min(1, (double) (totals.busyNanos() - busyNanos) / elapsed);
    startNanos = nanos;
    flops = totals.flops();
    bytes = moved;
    busyNanos = totals.busyNanos();
  }

  /** Operations over the peak's. */
  public double mfu() {
    return mfu;
  }

  /** Bytes over the peak's. */
  public double mbu() {
    return mbu;
  }

  /** Share of the time with a step on the device. */
  public double busy() {
    return busy;
  }
}
