package dev.tacho.server;

import java.util.Arrays;

/**
 * What a test of {@link EngineBench} gave.
 *
 * @param test {@code prefill}, {@code decode} or {@code batched_decode}
 * @param batch sequences side by side
 * @param tokensPerSecond median over the runs; tokens of all sequences together
 * @param spread (largest - smallest) / median
 */
record BenchResult(String test, int batch, double tokensPerSecond, double spread) {
  /** The median and the spread of these runs, in tokens a second. */
  static BenchResult of(String test, int batch, double[] runs) {
    double[] sorted = runs.clone();
    Arrays.sort(sorted);
    int middle = sorted.length / 2;
    double median = sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    return new BenchResult(test, batch, median, (sorted[sorted.length - 1] - sorted[0]) / median);
  }
}
