package dev.tacho.bench;

import dev.tacho.metrics.event.EventReader;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.RecordConsumer;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** Writing a step of 256 tokens into a ring and reading it again on the same thread: nanoseconds a token for both. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 10, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(value = 3, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
public class RingBenchmark {
  private static final int SEQUENCES = 256;

  private final EventRing ring = new EventRing();
  private final EventWriter writer = EventWriter.into(ring);
  private final EventReader reader = new EventReader();
  private final RecordConsumer consumer = (memory, offset) -> reader.wrap(memory, offset).bytes();
  private final StepShape shape = new StepShape();
  private long step;

  /** Write and read. */
  @Benchmark
  @OperationsPerInvocation(SEQUENCES)
  public long writeAndRead() {
    step++;
    writer.step(step, step, step, SEQUENCES, shape);
    for (int slot = 0; slot < SEQUENCES; slot++) {
      writer.tokens(slot, 1, 1);
    }
    writer.commit();
    return ring.drain(consumer, ring.tailAcquire());
  }
}
