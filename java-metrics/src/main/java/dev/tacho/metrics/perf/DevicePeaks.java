package dev.tacho.metrics.perf;

/**
 * What a device can do at its peak.
 *
 * @param flopsPerSecond floating point operations a second
 * @param bytesPerSecond bytes to and from memory a second
 */
public record DevicePeaks(double flopsPerSecond, double bytesPerSecond) {
  /** Checks the numbers. */
  public DevicePeaks {
    if (!(flopsPerSecond > 0 && Double.isFinite(flopsPerSecond) && bytesPerSecond > 0
        && Double.isFinite(bytesPerSecond))) {
      throw new IllegalArgumentException("peaks of " + flopsPerSecond + " FLOP/s and " + bytesPerSecond
          + " byte/s: must be positive and finite");
    }
  }

  /** The larger of each: two measurements show what can be done at least. */
  public DevicePeaks atLeast(DevicePeaks other) {
    return new DevicePeaks(
        Math.max(flopsPerSecond, other.flopsPerSecond), Math.max(bytesPerSecond, other.bytesPerSecond));
  }
}
