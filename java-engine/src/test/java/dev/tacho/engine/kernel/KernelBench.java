package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** The kernels under test beside their oracle, each with a worker of its own, and the memory of one test. */
final class KernelBench implements AutoCloseable {
  private static final long SCRATCH_BYTES = 1 << 20;

  final Arena arena = Arena.ofShared();
  final Kernels kernels;
  final Kernels oracle;
  final KernelWorker worker = new KernelWorker(arena, SCRATCH_BYTES);
  final KernelWorker oracleWorker = new KernelWorker(arena, SCRATCH_BYTES);

  KernelBench(Implementation implementation) {
    kernels = implementation.open();
    oracle = implementation.oracle();
    poison(worker.scratch());
  }

  static void poison(MemorySegment segment) {
    segment.fill((byte) 0xff);
  }

  Matrix matrix(int rows, int columns, int ld) {
    return new Matrix(arena, rows, columns, ld);
  }

  /** Bytes of a random matrix in file layout, at an odd address; every code and sign occurs, no NaN or infinity. */
  MemorySegment fileBytes(DType dtype, int n, int k, Random random) {
    long bytes = n * dtype.bytes(k);
    MemorySegment source = arena.allocate(bytes + 1).asSlice(1);
    for (long at = 0; at < bytes; at += dtype.blockBytes()) {
      switch (dtype) {
        case F32 -> Elements.set(DType.F32, source, at, 0, (float) random.nextGaussian());
        case F16 -> Elements.set(DType.F16, source, at, 0, (float) random.nextGaussian());
        case BF16 -> Elements.set(DType.BF16, source, at, 0, (float) random.nextGaussian());
        case Q8_0, Q4_0, Q4_K, Q6_K -> {
          byte[] codes = new byte[dtype.blockBytes()];
          random.nextBytes(codes);
          MemorySegment.copy(MemorySegment.ofArray(codes), 0, source, at, codes.length);
          long scale = dtype == DType.Q6_K ? at + dtype.blockBytes() - 2 : at;
          Elements.set(DType.F16, source, scale, 0, (float) random.nextGaussian() / 64);
          if (dtype == DType.Q4_K) {
            Elements.set(DType.F16, source, at + 2, 0, (float) random.nextGaussian() / 64);
          }
        }
      }
    }
    return source;
  }

  /** Packs in three ranges; what lies behind the packed bytes must stay. */
  Weight pack(Kernels by, DType dtype, int n, int k, MemorySegment source, KernelWorker on) {
    long bytes = by.weightBytes(dtype, n, k);
    MemorySegment whole = arena.allocate(bytes + 64, 64);
    poison(whole);
    Weight weight = new Weight(dtype, n, k, whole.asSlice(0, bytes));
    int groups = ArgumentChecks.rowGroups(n);
    by.weightPack(weight, source, groups / 2, groups, on);
    by.weightPack(weight, source, 0, groups / 3, on);
    by.weightPack(weight, source, groups / 3, groups / 2, on);
    for (long i = bytes; i < bytes + 64; i++) {
      assertThat(whole.get(java.lang.foreign.ValueLayout.JAVA_BYTE, i)).isEqualTo((byte) 0xff);
    }
    return weight;
  }

  /** Packs rows for weights of a type, in three ranges; what lies behind them must stay. */
  ActivationRows packRows(Kernels by, DType dtype, Matrix x, KernelWorker on) {
    return packRows(by, dtype, x.segment(), x.ld(), x.rows(), x.columns(), on);
  }

  private ActivationRows packRows(
      Kernels by, DType dtype, MemorySegment x, int ldx, int m, int k, KernelWorker on) {
    ActivationFormat format = by.activationFormat(dtype);
    long rowBytes = by.activationRowBytes(format, k);
    long bytes = m * rowBytes;
    MemorySegment whole = arena.allocate(bytes + 64, 64);
    poison(whole);
    ActivationRows rows = new ActivationRows(format, k, rowBytes, whole.asSlice(0, bytes));
    int blocks = Math.ceilDiv(k, Kernels.ACTIVATION_BLOCK);
    by.activationPack(x, ldx, m, rows, blocks / 2, blocks, on);
    by.activationPack(x, ldx, m, rows, 0, blocks / 3, on);
    by.activationPack(x, ldx, m, rows, blocks / 3, blocks / 2, on);
    for (long i = bytes; i < bytes + 64; i++) {
      assertThat(whole.get(java.lang.foreign.ValueLayout.JAVA_BYTE, i)).isEqualTo((byte) 0xff);
    }
    return rows;
  }

  /** Activations that packing for the implementation's weights of a type leaves as they are, or nearly so. */
  Matrix activations(DType dtype, int m, int k, int ld, Random random) {
    Matrix x = matrix(m, k, ld).fill(random);
    if (kernels.activationFormat(dtype) == ActivationFormat.BFLOAT16) {
      for (int i = 0; i < m; i++) {
        for (int j = 0; j < k; j++) {
          x.set(i, j, Float.intBitsToFloat(Elements.bf16Bits(x.get(i, j)) << 16));
        }
      }
    }
    return x;
  }

  /** y = x * w of all rows and columns, the activations packed first. */
  void matmul(Kernels by, Weight w, Matrix x, Matrix y, KernelWorker on) {
    ActivationRows rows = packRows(by, w.dtype(), x, on);
    int groups = ArgumentChecks.rowGroups(w.n());
    by.matmul(w, null, rows, x.rows(), y.segment(), y.ld(), false, 0, groups, on);
  }

  /** Borders 0 <= a <= b <= ... <= items that cut the items at random, empty ranges included. */
  static List<Integer> cuts(int items, Random random) {
    List<Integer> cuts = new ArrayList<>(List.of(0, items));
    for (int i = 0; i < 3; i++) {
      cuts.add(random.nextInt(items + 1));
    }
    cuts.sort(null);
    return cuts;
  }

  /** The counter lines of both workers are equal, time apart. */
  void assertSameCounters() {
    for (Operation operation : Operation.values()) {
      assertThat(counters(worker, operation))
          .as("calls, flops, read_bytes, write_bytes of %s", operation)
          .isEqualTo(counters(oracleWorker, operation));
    }
  }

  static List<Long> counters(KernelWorker worker, Operation operation) {
    MemorySegment line = worker.line(operation);
    return List.of(
        line.get(JAVA_LONG, KernelWorker.CALLS_OFFSET),
        line.get(JAVA_LONG, KernelWorker.FLOPS_OFFSET),
        line.get(JAVA_LONG, KernelWorker.READ_BYTES_OFFSET),
        line.get(JAVA_LONG, KernelWorker.WRITE_BYTES_OFFSET));
  }

  @Override
  public void close() {
    arena.close();
  }
}
