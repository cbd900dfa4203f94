package dev.tacho.metrics.prometheus;

import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.perf.ExactWork;
import dev.tacho.metrics.perf.ModelShape;
import dev.tacho.metrics.perf.PerfEstimator;
import dev.tacho.metrics.perf.WorkEstimate;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Estimated over counted work of some steps, for docs/metrics.md. */
final class WorkComparison {
  private static final ModelShape MODEL = ModelShape.dense(16, 2048, 32, 8, 64, 8192, 128256, 2, 2, 2);

  private WorkComparison() {}

  /** A row for each step: its name and three ratios. */
  static List<List<String>> rows() {
    return List.of(row("prefill of 128 tokens", 1, 128, 0), row("prefill of 2,048 tokens", 1, 2048, 0),
        row("prefill of 32,768 tokens", 1, 32768, 0), row("decode, 1 sequence at 2,048", 1, 1, 2047),
        row("decode, 64 sequences at 2,048", 64, 1, 2047), row("decode, 1 sequence at 32,768", 1, 1, 32767));
  }

  /** Estimated over counted operations, bytes read and bytes written. */
  static double[] ratios(int sequences, int tokens, long computed) {
    StepShape shape = new StepShape();
    ExactWork exact = new ExactWork(MODEL);
    for (int i = 0; i < sequences; i++) {
      shape.add(computed == 0, tokens, computed);
      exact.add(tokens, computed, 1);
    }
    WorkEstimate estimated = new WorkEstimate();
    new PerfEstimator(MODEL).estimate(shape, estimated);
    WorkEstimate counted = new WorkEstimate();
    exact.count(counted);
    return new double[] {(double) estimated.flops() / counted.flops(),
        (double) estimated.readBytes() / counted.readBytes(), (double) estimated.writeBytes() / counted.writeBytes()};
  }

  private static List<String> row(String name, int sequences, int tokens, long computed) {
    List<String> row = new ArrayList<>(List.of(name));
    for (double ratio : ratios(sequences, tokens, computed)) {
      row.add(String.format(Locale.ROOT, "%.3f", ratio));
    }
    return row;
  }
}
