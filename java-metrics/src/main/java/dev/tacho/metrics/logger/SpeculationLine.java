package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.SchedulerStats;
import dev.tacho.metrics.stats.SpeculationStats;
import java.util.StringJoiner;
import java.util.function.Consumer;

/** The line about speculative decoding, or about the denoising steps of a diffusion model. */
final class SpeculationLine implements LogPart {
  private static final double NANOS = 1e9;

  private final boolean diffusion;
  private final SpeculationStats sums = new SpeculationStats();
  private long lastNanos;

  SpeculationLine(boolean diffusion, long nanos) {
    this.diffusion = diffusion;
    this.lastNanos = nanos;
  }

  @Override
  public void record(SchedulerStats stats) {
    sums.add(stats.speculation());
  }

  @Override
  public void log(long nanos, Consumer<String> line) {
    if (sums.drafts() == 0) {
      return;
    }
    double seconds = (nanos - lastNanos) / NANOS;
    line.accept(diffusion ? denoising(seconds) : speculation(seconds));
    sums.reset(sums.positions());
    lastNanos = nanos;
  }

  private String speculation(double seconds) {
    double drafts = sums.drafts();
    StringJoiner byPosition = new StringJoiner(", ");
    for (int i = 0; i < sums.positions(); i++) {
      byPosition.add(CText.fixed(sums.acceptedAt(i) / drafts, 3));
    }
    return "SpecDecoding metrics: Mean acceptance length: " + CText.fixed(1 + sums.acceptedTokens() / drafts, 2)
        + ", Accepted throughput: " + rate(sums.acceptedTokens(), seconds)
        + " tokens/s, Drafted throughput: " + rate(sums.draftTokens(), seconds)
        + " tokens/s, Accepted: " + sums.acceptedTokens() + " tokens, Drafted: " + sums.draftTokens()
        + " tokens, Per-position acceptance rate: " + byPosition
        + ", Avg Draft acceptance rate: " + CText.fixed(ratio(sums.acceptedTokens(), sums.draftTokens()) * 100, 1)
        + "%";
  }

  private String denoising(double seconds) {
    return "DiffusionDecoding metrics: Committed token throughput: " + rate(sums.acceptedTokens(), seconds)
        + " tokens/s, Mean denoising steps per canvas: "
        + CText.fixed(ratio(sums.draftTokens(), sums.acceptedTokens()), 2)
        + ", Mean tokens committed per denoising step: "
        + CText.fixed(ratio(sums.acceptedTokens(), sums.drafts()), 2)
        + ", Committed: " + sums.acceptedTokens() + " tokens, Denoising steps: " + sums.drafts()
        + ", Canvas positions evaluated: " + sums.draftTokens();
  }

  private static double ratio(long numerator, long denominator) {
    return denominator == 0 ? Double.NaN : (double) numerator / denominator;
  }

  private static String rate(long count, double seconds) {
    return CText.fixed(seconds > 0 ? count / seconds : 0, 2);
  }
}
