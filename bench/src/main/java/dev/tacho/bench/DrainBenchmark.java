package dev.tacho.bench;

import dev.tacho.metrics.EngineMetricsOptions;
import dev.tacho.metrics.EngineMetricsSource;
import dev.tacho.metrics.collector.MetricsCollector;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.RequestId;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.prometheus.MetricsRegistry;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What the collector pays for a token: reading its record, its interval, its place in the histogram, the published
 * page. Each drain takes 64 steps of 256 tokens, as an engine of 2,500 steps a second leaves them in 26 ms.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 10, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(value = 3, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
public class DrainBenchmark {
  private static final int SEQUENCES = 256;
  private static final int STEPS = 64;
  private static final long STEP_NANOS = 400_000;

  private final MetricsCollector collector = MetricsCollector.onDemand();
  private final EngineMetricsSource source = EngineMetricsSource.open(EngineMetricsOptions.builder("model", 4096)
      .registry(MetricsRegistry.create(collector)).logInterval(Duration.ZERO).build());
  private final StepShape shape = new StepShape();
  private long step;

  /** The sequences arrive. */
  @Setup
  public void queue() {
    EventWriter events = source.engineWriter();
    for (int slot = 0; slot < SEQUENCES; slot++) {
      events.queued(slot, 0, 0, 0, 100, 0, 0, 1, 0);
      events.requestId(slot, 0, RequestId.of("cmpl-" + slot));
      events.scheduled(slot, 0, 0);
      shape.add(false, 1, 100);
    }
    events.commit();
    collector.drain();
  }

  /** Steps of decodes. */
  @Setup(Level.Invocation)
  public void write() {
    EventWriter events = source.engineWriter();
    for (int i = 0; i < STEPS; i++) {
      step++;
      long now = step * STEP_NANOS;
      events.step(step, now, now, SEQUENCES, shape);
      for (int slot = 0; slot < SEQUENCES; slot++) {
        events.tokens(slot, 0, 1);
      }
      events.snapshot(SEQUENCES, 0, 0, 10, 1000, 0, 0, 0);
      events.commit();
      source.outputWriter().pickUp(step, now);
      source.outputWriter().commit();
    }
  }

  /** A drain; nanoseconds a token. */
  @Benchmark
  @OperationsPerInvocation(STEPS * SEQUENCES)
  public void drain() {
    collector.drain();
  }

  /** The engine goes. */
  @TearDown
  public void close() {
    source.close();
  }
}
