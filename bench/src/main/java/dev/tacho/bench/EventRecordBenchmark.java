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
 * What recording costs the engine thread while another thread drains the ring on the other core; beside it what
 * observing the same tokens in other libraries' histograms would cost. Steps are recorded in bursts of a quarter of the
 * ring, so that it is cycled through; the reader comes whenever a sixteenth is unread, so it reads while the burst goes
 * on, as the collector may. Before the next burst, outside the measured time, the reader has caught up: a ring that
 * overflows is another matter, and the benchmark fails if it does.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 10, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(value = 3, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
public class EventRecordBenchmark {
  private static final int OBSERVATIONS = 256;
  private static final int MANY = 256;
  /** Steps of one token in a burst: 256 KiB. */
  private static final int SHORT_STEPS = 8192;
  /** Steps of {@link #MANY} tokens in a burst: 262 KiB. */
  private static final int LONG_STEPS = 128;

  /** A ring with its writer, and a thread that reads it. */
  @State(Scope.Benchmark)
  public static class Ring {
    private static final int DRAIN_BYTES = EventRing.DEFAULT_FIRST_BYTES / 16;
    /** Between two looks at the tail: about 20 µs, a thousandth of the collector's pause. */
    private static final int SPINS = 1000;

    private final EventRing ring = new EventRing();
    private final EventWriter writer = EventWriter.into(ring);
    private final StepShape one = new StepShape();
    private final StepShape many = new StepShape();
    private final Thread drainer = new Thread(this::drain, "drainer");
    private volatile boolean burst;
    private volatile boolean closed;
    private long step;

    /** Decodes, and the reader. */
    @Setup
    public void start() {
      one.add(false, 1, 100);
      for (int i = 0; i < MANY; i++) {
        many.add(false, 1, 100);
      }
      drainer.start();
    }

    /** Waits until the reader has read the burst before. */
    @Setup(Level.Invocation)
    public void catchUp() {
      burst = false;
      while (ring.headAcquire() != ring.tailAcquire()) {
        Thread.onSpinWait();
      }
      burst = true;
    }

    /** Ends the reader. Fails if the ring was ever full. */
    @TearDown
    public void stop() throws InterruptedException {
      closed = true;
      drainer.join();
      if (ring.fullCount() != 0) {
        throw new IllegalStateException("the ring was full " + ring.fullCount() + " times");
      }
    }

    private void record(int sequences, StepShape shape, long batchNanos) {
      writer.step(++step, batchNanos, batchNanos, sequences, shape);
      for (int slot = 0; slot < sequences; slot++) {
        writer.tokens(slot, 1, 1);
      }
      writer.commit();
    }

    private void drain() {
      EventReader reader = new EventReader();
      RecordConsumer consumer = (memory, offset) -> reader.wrap(memory, offset).bytes();
      while (!closed) {
        long end = ring.tailAcquire();
        if (end - ring.headAcquire() >= (burst ? DRAIN_BYTES : 1)) {
          ring.drain(consumer, end);
        }
        for (int i = 0; i < SPINS; i++) {
          Thread.onSpinWait();
        }
      }
    }
  }

  /** A step of one token, the clock left out. */
  @Benchmark
  @OperationsPerInvocation(SHORT_STEPS)
  public void stepOfOneToken(Ring ring) {
    for (int i = 0; i < SHORT_STEPS; i++) {
      ring.record(1, ring.one, i);
    }
  }

  /** A step of one token, with the one reading of the clock that it takes. */
  @Benchmark
  @OperationsPerInvocation(SHORT_STEPS)
  public void stepOfOneTokenWithClock(Ring ring) {
    for (int i = 0; i < SHORT_STEPS; i++) {
      ring.record(1, ring.one, System.nanoTime());
    }
  }

  /** A token of a step of 256, the clock left out. */
  @Benchmark
  @OperationsPerInvocation(LONG_STEPS * MANY)
  public void tokenOf256(Ring ring) {
    for (int i = 0; i < LONG_STEPS; i++) {
      ring.record(MANY, ring.many, i);
    }
  }

  /** A token of a step of 256, with the one reading of the clock that the step takes. */
  @Benchmark
  @OperationsPerInvocation(LONG_STEPS * MANY)
  public void tokenOf256WithClock(Ring ring) {
    for (int i = 0; i < LONG_STEPS; i++) {
      ring.record(MANY, ring.many, System.nanoTime());
    }
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
