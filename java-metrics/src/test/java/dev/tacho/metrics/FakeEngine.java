package dev.tacho.metrics;

import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.FinishReason;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.logger.StatLogger;
import dev.tacho.metrics.prometheus.ExpositionFormat;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import dev.tacho.metrics.stats.FinishedRequestStats;
import dev.tacho.metrics.stats.IterationStats;
import dev.tacho.metrics.stats.SchedulerStats;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** An engine that only writes events, at times that a test gives, in milliseconds. Drained when asked. */
public final class FakeEngine implements AutoCloseable {
  /** The model's name in labels. */
  public static final String MODEL = "m";

  private final EngineMetricsSource source;
  private final List<FinishedRequestStats> finished = new ArrayList<>();
  private final List<Double> interTokenLatencies = new ArrayList<>();
  private long step;

  /** An engine in a registry of its own. */
  public FakeEngine() {
    this(0, MetricsRegistry.create(MetricsCollector.onDemand()), options -> { });
  }

  /** An engine in a registry. */
  public FakeEngine(int index, MetricsRegistry registry, Consumer<EngineMetricsOptions.Builder> more) {
    EngineMetricsOptions.Builder options = EngineMetricsOptions.builder(MODEL, 4096).engineIndex(index)
        .registry(registry).logInterval(Duration.ZERO).statLogger(new Copy());
    more.accept(options);
    source = EngineMetricsSource.open(options.build());
  }

  /** The metrics under test. */
  public EngineMetricsSource source() {
    return source;
  }

  /** The engine thread's writer. */
  public EventWriter events() {
    return source.engineWriter();
  }

  /** The output thread's writer. */
  public EventWriter outputs() {
    return source.outputWriter();
  }

  /** A request with a slot of its own arrives and is queued at once. */
  public void queue(int slot, long millis, int promptTokens) {
    queue(slot, millis, promptTokens, 0, 1);
  }

  /** As {@link #queue(int, long, int)}, one of n of a parent. */
  public void queue(int slot, long millis, int promptTokens, int parent, int n) {
    events().queued(slot, 0, nanos(millis), nanos(millis), promptTokens, 16, parent, n, 0);
    events().commit();
  }

  /** Requests are scheduled. */
  public void schedule(long millis, int... slots) {
    for (int slot : slots) {
      events().scheduled(slot, 0, nanos(millis));
    }
    events().commit();
  }

  /** The first output of a request, with one token, picked up at once. */
  public void firstOutput(int slot, long millis, int promptTokens) {
    output(millis, 1, () -> {
      events().prefillStats(slot, 0, promptTokens, 0, 0, 0);
      events().tokens(slot, 0, 1);
    });
  }

  /** A later output of a request, picked up at once. */
  public void output(int slot, long millis, int tokens) {
    output(millis, 1, () -> events().tokens(slot, 0, tokens));
  }

  /** The last output of a request, picked up at once. */
  public void lastOutput(int slot, long millis, int tokens, FinishReason reason) {
    output(millis, 1, () -> {
      events().tokens(slot, 0, tokens);
      events().finished(slot, 0, reason);
    });
  }

  /** A step with outputs, picked up at once. */
  public void output(long millis, int outputs, Runnable records) {
    events().step(++step, nanos(millis), nanos(millis), outputs, new StepShape());
    records.run();
    events().commit();
    this.outputs().pickUp(step, nanos(millis));
    this.outputs().commit();
  }

  /** The client of a request goes away. */
  public void abort(int slot) {
    events().ended(slot, 0, FinishReason.ABORT);
    events().commit();
  }

  /** State of the scheduler. */
  public void snapshot(int running, int waiting, int deferred, int freeBlocks, int blocks) {
    events().snapshot(running, waiting, deferred, freeBlocks, blocks, 0, 0, 0);
    events().commit();
  }

  /** The value of a sample in the exposition whose labels contain the given text. */
  public double value(String name, String... labels) {
    for (String line : source.exposition(ExpositionFormat.TEXT_0_0_4).lines().toList()) {
      if (line.startsWith(name + "{") && List.of(labels).stream().allMatch(line::contains)) {
        return Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
      }
    }
    throw new AssertionError("no sample of " + name + " with " + List.of(labels));
  }

  /** Requests that finished with an output, as a stat logger sees them. */
  public List<FinishedRequestStats> finished() {
    source.registry().collector().drain();
    return finished;
  }

  /** Times between outputs, as a stat logger sees them. */
  public List<Double> interTokenLatencies() {
    source.registry().collector().drain();
    return interTokenLatencies;
  }

  /** Number and sum of a histogram's observations. */
  public Map<String, Double> histogram(String name) {
    return Map.of("count", value(name + "_count"), "sum", value(name + "_sum"));
  }

  @Override
  public void close() {
    source.close();
  }

  /** Milliseconds as nanoseconds. */
  public static long nanos(long millis) {
    return millis * 1_000_000;
  }

  /** Keeps what passes by. */
  private final class Copy implements StatLogger {
    @Override
    public void record(int engineIndex, @Nullable SchedulerStats scheduler, @Nullable IterationStats iteration) {
      if (iteration != null) {
        finished.addAll(iteration.finished());
        for (double latency : iteration.interTokenLatencies().toArray()) {
          interTokenLatencies.add(latency);
        }
      }
    }
  }
}
