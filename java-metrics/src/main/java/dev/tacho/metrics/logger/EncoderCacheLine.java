package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.EncoderCacheStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.StringJoiner;
import java.util.function.Consumer;

/** The line about the encoder cache: its connector's own figures, summed over the interval. */
final class EncoderCacheLine implements LogPart {
  private final EncoderCacheStats sums = new EncoderCacheStats();

  @Override
  public void record(SchedulerStats stats) {
    sums.add(stats.encoderCache());
  }

  @Override
  public void log(long nanos, Consumer<String> line) {
    if (sums.figures().isEmpty()) {
      return;
    }
    StringJoiner figures = new StringJoiner(", ", "EC Transfer metrics: ", "");
    sums.figures().forEach((name, value) -> figures.add(name + "=" + CText.shortest(value)));
    line.accept(figures.toString());
    sums.clear();
  }
}
