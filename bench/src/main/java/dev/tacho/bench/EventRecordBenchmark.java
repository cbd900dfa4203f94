package dev.tacho.bench;

import dev.tacho.metrics.event.EventReader;
import dev.tacho.metrics.event.EventWriter;
import dev.tacho.metrics.event.StepShape;
import dev.tacho.metrics.ring.EventRing;
import dev.tacho.metrics.ring.RecordConsumer;
import io.micrometer.core.instrument.DistributionSummary;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.DoubleHistogram;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.metrics.InstrumentType;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.data.AggregationTemporality;
import io.opentelemetry.sdk.metrics.export.CollectionRegistration;
import io.opentelemetry.sdk.metrics.export.MetricReader;
import io.prometheus.client.Histogram;
import io.prometheus.metrics.core.datapoints.DistributionDataPoint;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.SingleWriterRecorder;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Group;
import org.openjdk.jmh.annotations.GroupThreads;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What recording costs the engine thread, a step of {@code sequences} tokens at a time, while another thread drains the
 * ring; beside it what observing the same tokens in simpleclient's histogram would cost. Divide a step's time by its
 * sequences for the cost of a token. In the output the rows {@code …:record} are the writer's; {@code …:drain} are the
 * other thread's. That one comes back when a quarter of the ring is unread, as the collector comes back after a while;
 * it does not stare at the tail.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 10, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(value = 3, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
public class EventRecordBenchmark {
  private static final int OBSERVATIONS = 256;
  private static final int DRAIN_BYTES = EventRing.DEFAULT_FIRST_BYTES / 4;
  /** Between two looks at the tail, and before a drain in any case: the writer's thread may have ended. */
  private static final int SPINS = 100;
  private static final int MAX_LOOKS = 10_000;

  /** A ring with its writer and its reader. */
  @State(Scope.Group)
  public static class Ring {
    /** Tokens in a step. */
    @Param({"1", "256"})
    int sequences;

    private final EventRing ring = new EventRing();
    private final EventWriter writer = EventWriter.into(ring);
    private final EventReader reader = new EventReader();
    private final RecordConsumer consumer = (memory, offset) -> reader.wrap(memory, offset).bytes();
    private final StepShape shape = new StepShape();
    private long step;

    /** A step of decodes. */
    @Setup
    public void fillShape() {
      for (int i = 0; i < sequences; i++) {
        shape.add(false, 1, 100);
      }
    }

    private void record(long batchNanos) {
      writer.step(++step, batchNanos, batchNanos, sequences, shape);
      for (int slot = 0; slot < sequences; slot++) {
        writer.tokens(slot, 1, 1);
      }
      writer.commit();
    }

    private long drain() {
      long read = ring.headAcquire();
      long end = ring.tailAcquire();
      for (int looks = 0; end - read < DRAIN_BYTES && looks < MAX_LOOKS; looks++) {
        for (int i = 0; i < SPINS; i++) {
          Thread.onSpinWait();
        }
        end = ring.tailAcquire();
      }
      ring.prepareSpare();
      return ring.drain(consumer, end);
    }
  }

  /** A step, with the one reading of the clock that it takes. */
  @Benchmark
  @Group("stepWithClock")
  @GroupThreads(1)
  public void record(Ring ring) {
    ring.record(System.nanoTime());
  }

  /** The thread on the other end. */
  @Benchmark
  @Group("stepWithClock")
  @GroupThreads(1)
  public long drain(Ring ring) {
    return ring.drain();
  }

  /** A step, the clock left out. */
  @Benchmark
  @Group("stepWithoutClock")
  @GroupThreads(1)
  public void recordWithoutClock(Ring ring) {
    ring.record(ring.step);
  }

  /** The thread on the other end. */
  @Benchmark
  @Group("stepWithoutClock")
  @GroupThreads(1)
  public long drainWithoutClock(Ring ring) {
    return ring.drain();
  }

  /** A histogram child of simpleclient with the buckets of time to first token. */
  @State(Scope.Thread)
  public static class Simpleclient {
    private final Histogram histogram =
        Histogram.build("h", "h")
            .labelNames("model_name", "engine")
            .buckets(
                0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160,
                640, 2560)
            .create();
    private final Histogram.Child child = histogram.labels("model", "0");
    private final Histogram.Child plain =
        Histogram.build("p", "p").labelNames("model_name", "engine").withoutExemplars().create().labels("model", "0");
    private final double[] values = new double[OBSERVATIONS];

    /** Latencies from a millisecond to a second. */
    @Setup
    public void fillValues() {
      for (int i = 0; i < OBSERVATIONS; i++) {
        values[i] = Math.pow(10, -3 + 3.0 * i / OBSERVATIONS);
      }
    }
  }

  /** One observation as simpleclient comes. */
  @Benchmark
  @OperationsPerInvocation(OBSERVATIONS)
  public void simpleclientObserve(Simpleclient state) {
    for (double value : state.values) {
      state.child.observe(value);
    }
  }

  /** One observation with exemplars off. */
  @Benchmark
  @OperationsPerInvocation(OBSERVATIONS)
  public void simpleclientObserveWithoutExemplars(Simpleclient state) {
    for (double value : state.values) {
      state.plain.observe(value);
    }
  }

  /** Histograms of other libraries, with their own kinds of buckets. */
  @State(Scope.Thread)
  public static class Others {
    private static final double[] BOUNDS = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5,
      5, 7.5, 10, 20, 40, 80, 160, 640, 2560};

    private final DistributionDataPoint clientJava = io.prometheus.metrics.core.metrics.Histogram.builder().name("h")
        .help("h").labelNames("model_name", "engine").classicOnly().withoutExemplars().classicUpperBounds(BOUNDS)
        .build().labelValues("model", "0");
    private final DistributionSummary micrometer = DistributionSummary.builder("h").tags("model_name", "model")
        .serviceLevelObjectives(BOUNDS).register(new SimpleMeterRegistry());
    private final SingleWriterRecorder hdr = new SingleWriterRecorder(3);
    private final DoubleHistogram openTelemetry = SdkMeterProvider.builder()
        .registerMetricReader(new Unread()).build().get("bench").histogramBuilder("h")
        .setExplicitBucketBoundariesAdvice(Arrays.stream(BOUNDS).boxed().toList()).build();
    private final Attributes attributes = Attributes.of(AttributeKey.stringKey("model_name"), "model",
        AttributeKey.stringKey("engine"), "0");
  }

  /** A reader that never reads, so that the provider keeps what is recorded. */
  private static final class Unread implements MetricReader {
    @Override
    public void register(CollectionRegistration registration) {}

    @Override
    public AggregationTemporality getAggregationTemporality(InstrumentType type) {
      return AggregationTemporality.CUMULATIVE;
    }

    @Override
    public CompletableResultCode forceFlush() {
      return CompletableResultCode.ofSuccess();
    }

    @Override
    public CompletableResultCode shutdown() {
      return CompletableResultCode.ofSuccess();
    }
  }

  /** One observation in a classic histogram of client_java 1.x. */
  @Benchmark
  @OperationsPerInvocation(OBSERVATIONS)
  public void clientJavaObserve(Simpleclient state, Others others) {
    for (double value : state.values) {
      others.clientJava.observe(value);
    }
  }

  /** One observation in a summary of Micrometer with the same buckets. */
  @Benchmark
  @OperationsPerInvocation(OBSERVATIONS)
  public void micrometerRecord(Simpleclient state, Others others) {
    for (double value : state.values) {
      others.micrometer.record(value);
    }
  }

  /** One value, in microseconds, in HdrHistogram's recorder for a single writer. */
  @Benchmark
  @OperationsPerInvocation(OBSERVATIONS)
  public void hdrHistogramRecord(Simpleclient state, Others others) {
    for (double value : state.values) {
      others.hdr.recordValue((long) (value * 1e6));
    }
  }

  /** One observation in a histogram of OpenTelemetry with the same buckets. */
  @Benchmark
  @OperationsPerInvocation(OBSERVATIONS)
  public void openTelemetryRecord(Simpleclient state, Others others) {
    for (double value : state.values) {
      others.openTelemetry.record(value, others.attributes);
    }
  }

  /** The clock alone. */
  @Benchmark
  public long nanoTime() {
    return System.nanoTime();
  }
}
