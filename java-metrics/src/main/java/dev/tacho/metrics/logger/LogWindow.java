package dev.tacho.metrics.logger;

import dev.tacho.metrics.stats.HitRateWindow;
import dev.tacho.metrics.stats.IterationDetails;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/**
 * What happened between two log lines, and the lines themselves: throughput, queues, caches, then each part that has
 * something to say. Debug level while nothing was done since the line before last.
 */
final class LogWindow {
  /** Lines go here unless told otherwise. */
  static final BiConsumer<Level, String> SLF4J = slf4j();

  private static final double NANOS = 1e9;

  private final LogOptions options;
  private final String prefix;
  private final BiConsumer<Level, String> lines;
  private final List<LogPart> parts = new ArrayList<>();
  private final HitRateWindow prefixHits = new HitRateWindow();
  private final HitRateWindow connectorHits = new HitRateWindow();
  private final HitRateWindow multiModalHits = new HitRateWindow();

  private long lastNanos;
  private long promptTokens;
  private long generationTokens;
  private long preemptions;
  private long corrupted;
  private double lastPromptThroughput;
  private double lastGenerationThroughput;

  /**
   * A window that begins now.
   *
   * @param options what the lines are about
   * @param prefix begins each line
   * @param withWork true if estimated work may be shown
   * @param nanos now, on the engine's monotonic clock
   * @param lines takes level and text
   */
  LogWindow(LogOptions options, String prefix, boolean withWork, long nanos, BiConsumer<Level, String> lines) {
    this.options = options;
    this.prefix = prefix;
    this.lines = lines;
    this.lastNanos = nanos;
    parts.add(new SpeculationLine(options.diffusion(), nanos));
    parts.add(new TransferLine());
    parts.add(new EncoderCacheLine());
    String graphMode = options.graphMode();
    if (graphMode != null) {
      parts.add(new GraphTable(graphMode, options.captureSizes()));
    }
    if (withWork && options.mfuMetrics()) {
      parts.add(new WorkLine(prefix, nanos));
      if (options.mfuDetails()) {
        parts.add(new WorkDetails(prefix, nanos, text -> lines.accept(Level.DEBUG, text)));
      }
    }
  }

  void record(@Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
    if (iteration != null) {
      promptTokens += iteration.promptTokens().computed();
      generationTokens += iteration.generationTokens();
      preemptions += iteration.preemptions();
      corrupted += iteration.corruptedRequests();
      multiModalHits.observe(iteration.multiModalCache());
    }
    if (scheduler != null) {
      prefixHits.observe(scheduler.prefixCache());
      connectorHits.observe(scheduler.connectorCache().lookups());
      parts.forEach(part -> part.record(scheduler));
    }
  }

  void log(long nanos, QueueState state) {
    double seconds = (nanos - lastNanos) / NANOS;
    double promptThroughput = seconds > 0 ? promptTokens / seconds : 0;
    double generationThroughput = seconds > 0 ? generationTokens / seconds : 0;
    boolean idle = promptThroughput == 0 && generationThroughput == 0 && lastPromptThroughput == 0
        && lastGenerationThroughput == 0;
    Level level = idle ? Level.DEBUG : Level.INFO;
    lines.accept(level, line(promptThroughput, generationThroughput, state));
    parts.forEach(part -> part.log(nanos, text -> lines.accept(level, text)));

    lastNanos = nanos;
    promptTokens = 0;
    generationTokens = 0;
    preemptions = 0;
    corrupted = 0;
    lastPromptThroughput = promptThroughput;
    lastGenerationThroughput = generationThroughput;
  }

  /** The line about one step, at once. */
  void details(String enginePrefix, IterationDetails step, double kvCacheUsage) {
    String encoder = step.encoderInputs() <= 0 ? ""
        : ", encoder inputs: " + step.encoderInputs() + ", encoder output embeddings: " + step.encoderOutputs();
    lines.accept(Level.INFO, enginePrefix + "Iteration(" + step.index() + "): " + step.contextRequests()
        + " context requests, " + step.contextTokens() + " context tokens, " + step.generationRequests()
        + " generation requests, " + step.generationTokens() + " generation tokens, iteration elapsed time: "
        + CText.fixed(step.elapsedMillis(), 2) + " ms" + (step.isDummy() ? " (dummy)" : "") + ", "
        + options.deviceName() + " KV cache usage: " + percent(kvCacheUsage) + encoder);
  }

  static String enginePrefix(int engineIndex) {
    return String.format(Locale.ROOT, "Engine %03d: ", engineIndex);
  }

  private String line(double promptThroughput, double generationThroughput, QueueState state) {
    StringBuilder line = new StringBuilder(prefix);
    line.append("Avg prompt throughput: ").append(CText.fixed(promptThroughput, 1)).append(" tokens/s, ");
    line.append("Avg generation throughput: ").append(CText.fixed(generationThroughput, 1)).append(" tokens/s, ");
    line.append("Running: ").append(state.running()).append(" reqs, ");
    line.append("Waiting: ").append(state.waiting() + state.deferred()).append(" reqs, ");
    if (state.deferred() > 0) {
      line.append("Deferred: ").append(state.deferred()).append(" reqs, ");
    }
    if (state.isFetching()) {
      line.append("KV fetch: ").append(state.fetchesToStart()).append(" waiting to start, ")
          .append(state.fetchesInProgress()).append(" in progress, ")
          .append(state.fetchesCompleted()).append(" completed waiting, ");
    }
    if (preemptions > 0) {
      line.append("Preemptions: ").append(preemptions).append(", ");
    }
    line.append(options.deviceName()).append(" KV cache usage: ").append(percent(state.kvCacheUsage()));
    rate(line, "Prefix", prefixHits);
    if (corrupted > 0 || options.nansInLogits()) {
      line.append(", Corrupted: ").append(corrupted).append(" reqs");
    }
    rate(line, "External prefix", connectorHits);
    rate(line, "MM", multiModalHits);
    return line.toString();
  }

  private static void rate(StringBuilder line, String cache, HitRateWindow window) {
    if (!window.isEmpty()) {
      line.append(", ").append(cache).append(" cache hit rate: ").append(percent(window.rate()));
    }
  }

  private static String percent(double ratio) {
    return CText.fixed(ratio * 100, 1) + '%';
  }

  private static BiConsumer<Level, String> slf4j() {
    Logger log = LoggerFactory.getLogger(LoggingStatLogger.class);
    return (level, line) -> log.atLevel(level).log(line);
  }
}
