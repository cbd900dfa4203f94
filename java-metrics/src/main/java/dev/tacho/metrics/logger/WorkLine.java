package dev.tacho.metrics.logger;

import dev.tacho.metrics.perf.WorkEstimate;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.function.Consumer;

/** The line about estimated operations and memory traffic. */
final class WorkLine implements LogPart {
  private static final double NANOS = 1e9;

  private final String prefix;
  private final WorkEstimate sums = new WorkEstimate();
  private long lastNanos;

  WorkLine(String prefix, long nanos) {
    this.prefix = prefix;
    this.lastNanos = nanos;
  }

  @Override
  public void record(SchedulerStats stats) {
    WorkEstimate work = stats.work();
    sums.set(sums.flops() + work.flops(), sums.readBytes() + work.readBytes(),
        sums.writeBytes() + work.writeBytes());
  }

  @Override
  public void log(long nanos, Consumer<String> line) {
    if (sums.isZero()) {
      return;
    }
    double seconds = (nanos - lastNanos) / NANOS;
    double teraflops = seconds > 0 ? sums.flops() / seconds / 1e12 : 0;
    double gigabytes = seconds > 0 ? (sums.readBytes() + sums.writeBytes()) / seconds / 1e9 : 0;
    line.accept(prefix + "MFU: " + CText.fixed(teraflops, 1) + " TF/s/device " + CText.fixed(gigabytes, 1)
        + " GB/s/device");
    sums.reset();
    lastNanos = nanos;
  }
}
