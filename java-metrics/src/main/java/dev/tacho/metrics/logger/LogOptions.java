package dev.tacho.metrics.logger;

import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What the log lines of an engine are about. Immutable.
 *
 * @param device kind of the device, such as CPU; cuda is written GPU
 * @param mfuMetrics true adds the line about estimated work
 * @param mfuDetails true adds, at debug level, its parts
 * @param nansInLogits true shows requests that met a NaN also when there were none
 * @param diffusion true for a diffusion model
 * @param graphMode which CUDA graphs are used, or null if the table of graphs is off
 * @param captureSizes sizes in tokens for which graphs were captured
 */
public record LogOptions(String device, boolean mfuMetrics, boolean mfuDetails, boolean nansInLogits,
    boolean diffusion, @Nullable String graphMode, List<Integer> captureSizes) {
  /** Copies the list. */
  public LogOptions {
    captureSizes = List.copyOf(captureSizes);
  }

  /** Lines about an engine on a kind of device, without anything that has to be asked for. */
  public static LogOptions of(String device) {
    return new LogOptions(device, false, false, false, false, null, List.of());
  }

  /** The same with the line about estimated work, or without. */
  public LogOptions withMfuMetrics(boolean on) {
    return new LogOptions(device, on, mfuDetails, nansInLogits, diffusion, graphMode, captureSizes);
  }

  /** The same with the debug line about the parts of that estimate, or without. */
  public LogOptions withMfuDetails(boolean on) {
    return new LogOptions(device, mfuMetrics, on, nansInLogits, diffusion, graphMode, captureSizes);
  }

  /** The same with requests that met a NaN shown also when there were none, or not. */
  public LogOptions withNansInLogits(boolean on) {
    return new LogOptions(device, mfuMetrics, mfuDetails, on, diffusion, graphMode, captureSizes);
  }

  /**
   * The same with the table of CUDA graphs.
   *
   * @param mode which of them are used
   * @param sizes in tokens, for which they were captured
   */
  public LogOptions withGraphs(String mode, List<Integer> sizes) {
    return new LogOptions(device, mfuMetrics, mfuDetails, nansInLogits, diffusion, mode, sizes);
  }

  /** The device as a line names it. */
  String deviceName() {
    return device.equalsIgnoreCase("cuda") ? "GPU" : device.toUpperCase(Locale.ROOT);
  }
}
