package dev.tacho.bench;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.KernelSelection;
import dev.tacho.engine.kernel.KernelWorker;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** One thread's matmul of rows by a 1024 x 1024 matrix, by provider and weight type: microseconds a call. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(value = 1, jvmArgsAppend = {"--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED"})
public class MatmulBenchmark {
  private static final int N = 1024;
  private static final int K = 1024;

  /** Who computes. */
  @Param({"native", "vector", "scalar"})
  String provider;

  /** Type of the weights. */
  @Param({"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q6_K"})
  DType dtype;

  /** Rows: 1 as in decode, 64 as in prefill. */
  @Param({"1", "64"})
  int rows;

  private final Arena arena = Arena.ofShared();
  private Kernels kernels;
  private KernelWorker worker;
  private Weight weight;
  private ActivationRows x;
  private MemorySegment y;

  /** Random codes with a scale of 1/64; random activations. */
  @Setup
  public void setUp() {
    SplittableRandom random = new SplittableRandom(1);
    kernels = KernelSelection.select(provider).kernels();
    worker = new KernelWorker(arena, 0);
    long blocks = (long) N * K / dtype.blockElements();
    MemorySegment source = arena.allocate(dtype.bytes((long) N * K), 64);
    for (long block = 0; block < blocks; block++) {
      fillBlock(source.asSlice(block * dtype.blockBytes(), dtype.blockBytes()), random);
    }
    weight = new Weight(dtype, N, K, arena.allocate(kernels.weightBytes(dtype, N, K), 64));
    kernels.weightPack(weight, source, 0, N / Kernels.ROW_GROUP, worker);
    MemorySegment floats = arena.allocate(ValueLayout.JAVA_FLOAT, (long) rows * K);
    y = arena.allocate(ValueLayout.JAVA_FLOAT, (long) rows * N);
    for (long i = 0; i < (long) rows * K; i++) {
      floats.setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) random.nextDouble(-1, 1));
    }
    ActivationFormat format = kernels.activationFormat(dtype);
    long rowBytes = kernels.activationRowBytes(format, K);
    x = new ActivationRows(format, K, rowBytes, arena.allocate(rows * rowBytes, 64));
    kernels.activationPack(floats, K, rows, x, 0, K / Kernels.ACTIVATION_BLOCK, worker);
  }

  private void fillBlock(MemorySegment block, SplittableRandom random) {
    float value = (float) random.nextDouble(-1, 1);
    switch (dtype) {
      case F32 -> block.set(ValueLayout.JAVA_FLOAT_UNALIGNED, 0, value);
      case F16 -> block.set(ValueLayout.JAVA_SHORT_UNALIGNED, 0, Float.floatToFloat16(value));
      case BF16 -> block.set(ValueLayout.JAVA_SHORT_UNALIGNED, 0, (short) (Float.floatToIntBits(value) >>> 16));
      case Q8_0, Q4_0, Q4_K, Q6_K -> {
        for (int i = 0; i < dtype.blockBytes(); i++) {
          block.set(ValueLayout.JAVA_BYTE, i, (byte) random.nextInt());
        }
        short scale = Float.floatToFloat16(1f / 64);
        if (dtype == DType.Q6_K) {
          block.set(ValueLayout.JAVA_SHORT_UNALIGNED, dtype.blockBytes() - Short.BYTES, scale);
        } else {
          block.set(ValueLayout.JAVA_SHORT_UNALIGNED, 0, scale);
        }
        if (dtype == DType.Q4_K) {
          block.set(ValueLayout.JAVA_SHORT_UNALIGNED, Short.BYTES, scale);
        }
      }
    }
  }

  /** Gives the memory back. */
  @TearDown
  public void tearDown() {
    arena.close();
  }

  /** All columns. */
  @Benchmark
  public void matmul() {
    kernels.matmul(weight, null, x, rows, y, N, false, 0, N / Kernels.ROW_GROUP, worker);
  }
}
