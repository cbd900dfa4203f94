package dev.tacho.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.tacho.engine.simulation.SimulationReport;
import dev.tacho.engine.simulation.SimulationReport.Times;
import java.util.Locale;

/** A simulated run in words and in JSON. */
final class SimulationText {
  private SimulationText() {}

  /** A table for people. */
  static String table(SimulationReport r) {
    StringBuilder text = new StringBuilder(1024);
    Locale l = Locale.ROOT;
    double seconds = r.seconds();
    line(text, "requests",
        String.format(l, "%d in %.3f s, %.2f a second", r.requests(), seconds, r.requests() / seconds));
    line(text, "tokens", String.format(l, "%d prompt (%d of them cached), %d output, %.1f output tokens/s",
        r.promptTokens(), r.cachedTokens(), r.outputTokens(), r.outputTokens() / seconds));
    line(text, "steps", String.format(l, "%d, busy %.1f %% of the time", r.steps(), 100 * r.busySeconds() / seconds));
    line(text, "KV usage",
        String.format(l, "mean %.1f %%, peak %.1f %%", 100 * r.meanKvUsage(), 100 * r.peakKvUsage()));
    line(text, "running", String.format(l, "mean %.1f, peak %d; waiting at most %d",
        r.meanRunning(), r.peakRunning(), r.peakWaiting()));
    line(text, "preemptions", String.valueOf(r.preemptions()));
    text.append(String.format("%n%-12s %10s %10s %10s %10s %10s %10s%n",
        "seconds", "mean", "p50", "p90", "p95", "p99", "max"));
    times(text, "queue", r.queueTime());
    times(text, "TTFT", r.timeToFirstToken());
    times(text, "ITL", r.interTokenLatency());
    times(text, "E2E", r.endToEnd());
    return text.toString().stripTrailing();
  }

  private static void line(StringBuilder text, String name, String value) {
    text.append(String.format("%-12s %s%n", name, value));
  }

  private static void times(StringBuilder text, String name, Times t) {
    text.append(String.format(Locale.ROOT, "%-12s %10.4f %10.4f %10.4f %10.4f %10.4f %10.4f%n",
        name, t.mean(), t.p50(), t.p90(), t.p95(), t.p99(), t.max()));
  }

  /** All figures. */
  static ObjectNode json(SimulationReport r, double wallSeconds) {
    ObjectNode body = Json.object();
    body.put("requests", r.requests())
        .put("seconds", r.seconds())
        .put("busy_seconds", r.busySeconds())
        .put("steps", r.steps())
        .put("decode_tokens", r.decodeTokens())
        .put("prefill_tokens", r.prefillTokens())
        .put("prompt_tokens", r.promptTokens())
        .put("cached_tokens", r.cachedTokens())
        .put("output_tokens", r.outputTokens())
        .put("preemptions", r.preemptions())
        .put("kv_cache_usage_mean", r.meanKvUsage())
        .put("kv_cache_usage_peak", r.peakKvUsage())
        .put("running_mean", r.meanRunning())
        .put("running_peak", r.peakRunning())
        .put("waiting_peak", r.peakWaiting());
    times(body.putObject("queue_seconds"), r.queueTime());
    times(body.putObject("time_to_first_token_seconds"), r.timeToFirstToken());
    times(body.putObject("inter_token_latency_seconds"), r.interTokenLatency());
    times(body.putObject("end_to_end_seconds"), r.endToEnd());
    return body.put("wall_seconds", wallSeconds);
  }

  private static void times(ObjectNode body, Times t) {
    body.put("count", t.count())
        .put("mean", t.mean())
        .put("p50", t.p50())
        .put("p90", t.p90())
        .put("p95", t.p95())
        .put("p99", t.p99())
        .put("max", t.max());
  }
}
