package dev.tacho.metrics.logger;

import dev.tacho.metrics.perf.WorkBreakdown;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.Map;
import java.util.StringJoiner;
import java.util.function.Consumer;

/** The debug line about the parts of the estimated work, as JSON. */
final class WorkDetails implements LogPart {
  private static final double NANOS = 1e9;

  private final String prefix;
  private final Consumer<String> debug;
  private final WorkBreakdown sums = new WorkBreakdown();
  private long lastNanos;

  WorkDetails(String prefix, long nanos, Consumer<String> debug) {
    this.prefix = prefix;
    this.lastNanos = nanos;
    this.debug = debug;
  }

  @Override
  public void record(SchedulerStats stats) {
    sums.add(stats.work().parts());
  }

  @Override
  public void log(long nanos, Consumer<String> line) {
    if (sums.steps() == 0) {
      return;
    }
    double seconds = (nanos - lastNanos) / NANOS;
    StringJoiner json = new StringJoiner(",\n  ", "{\n  ", "\n}");
    json.add("\"prefill_reqs\": " + sums.prefillRequests());
    json.add("\"decode_reqs\": " + sums.decodeRequests());
    json.add("\"num_batches\": " + sums.steps());
    StringJoiner context = new StringJoiner(",\n    ", "{\n    ", "\n  }");
    sums.context().forEach((name, value) -> context.add("\"" + name + "\": " + value));
    json.add("\"context_breakdown\": " + context);
    json.add("\"flops_breakdown\": " + breakdown(sums.flops(), 1e12, "TF"));
    json.add("\"num_read_bytes_breakdown\": " + breakdown(sums.readBytes(), 1e9, "GB"));
    json.add("\"num_write_bytes_breakdown\": " + breakdown(sums.writeBytes(), 1e9, "GB"));
    json.add("\"duration\": \"" + CText.fixed(seconds, 1) + "s\"");
    double overhead = seconds > 0 ? sums.estimateNanos() / NANOS / seconds : 0;
    json.add("\"mfu_calc_overhead\": \"" + CText.fixed(overhead * 100, 1) + "%\"");
    debug.accept(prefix + "MFU details: " + json);
    sums.clear();
    lastNanos = nanos;
  }

  private static String breakdown(Map<String, Long> parts, double unit, String name) {
    StringJoiner json = new StringJoiner(",\n    ", "{\n    ", "\n  }");
    parts.forEach((part, value) -> json.add("\"" + part + "\": \"" + CText.fixed(value / unit, 1) + name + "\""));
    return json.toString();
  }
}
