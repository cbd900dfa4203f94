package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.SchedulerStats;
import dev.tacho.metrics.stats.TransferStats;
import java.util.StringJoiner;
import java.util.function.Consumer;

/** The line about KV transfers between engines. */
final class TransferLine implements LogPart {
  private final TransferStats sums = new TransferStats();

  @Override
  public void record(SchedulerStats stats) {
    sums.add(stats.transfers());
  }

  @Override
  public void log(long nanos, Consumer<String> line) {
    if (sums.isEmpty()) {
      return;
    }
    StringJoiner figures = new StringJoiner(", ", "KV Transfer metrics: ", "");
    sums.summary().forEach((name, value) -> figures.add(name + "=" + CText.shortest(value)));
    line.accept(figures.toString());
    sums.clear();
  }
}
