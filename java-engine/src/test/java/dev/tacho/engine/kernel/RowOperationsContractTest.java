package dev.tacho.engine.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The contract of rms_norm, silu_mul and rope, for every provider. An element may differ from the oracle's by 4e-6 of
 * its size (rope: of its pair's), and by 1e-9 where it is next to nothing.
 */
@ParameterizedClass(name = "{0}")
@MethodSource("dev.tacho.engine.kernel.Implementation#available")
class RowOperationsContractTest {
  private static final double RELATIVE = 4e-6;
  private static final double TINY = 1e-9;

  private final Implementation implementation;

  RowOperationsContractTest(Implementation implementation) {
    this.implementation = implementation;
  }

  static LongStream seeds() {
    return LongStream.rangeClosed(1, 24);
  }

  /** One operation on whatever tensors it closes over. */
  private interface RowOperation {
    void run(Kernels kernels, Matrix y, int begin, int end, KernelWorker worker);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void rmsNorm(long seed) {
    try (KernelBench bench = new KernelBench(implementation)) {
      Random random = new Random(seed);
      int m = 1 + random.nextInt(5);
      int n = width(random);
      Matrix x = bench.matrix(m, n, n + random.nextInt(5)).fill(random);
      Matrix weight = bench.matrix(1, n, n).fill(random);
      check(
          bench,
          random,
          m,
          x,
          (kernels, y, begin, end, worker) ->
              kernels.rmsNorm(x.segment(), x.ld(), weight.segment(), 1e-5f, m, floats(y), begin, end, worker),
          (kernels, y, begin, end, worker) ->
              kernels.rmsNorm(y.segment(), y.ld(), weight.segment(), 1e-5f, m, floats(y), begin, end, worker));
    }
  }

  private static ActivationRows floats(Matrix y) {
    return ActivationRows.floats(y.segment(), y.ld(), y.columns());
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(DType.class)
  void rmsNormWritesWhatPackingItWouldGive(DType dtype) {
    try (KernelBench bench = new KernelBench(implementation)) {
      int n = 96;
      Random random = new Random(dtype.id());
      Matrix x = bench.matrix(3, n, n).fill(random);
      Matrix normed = bench.matrix(3, n, n);
      Kernels kernels = bench.kernels;
      MemorySegment weight = bench.matrix(1, n, n).fill(random).segment();
      kernels.rmsNorm(x.segment(), n, weight, 1e-5f, 3, floats(normed), 0, 3, bench.worker);
      ActivationRows packed = bench.packRows(kernels, dtype, normed, bench.worker);
      MemorySegment data = bench.arena.allocate(3 * packed.rowBytes(), 4);
      ActivationRows direct = new ActivationRows(packed.format(), n, packed.rowBytes(), data);
      kernels.rmsNorm(x.segment(), n, weight, 1e-5f, 3, direct, 0, 3, bench.worker);
      assertThat(data.mismatch(packed.data())).as("first byte that differs").isEqualTo(-1);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void siluMul(long seed) {
    try (KernelBench bench = new KernelBench(implementation)) {
      Random random = new Random(seed);
      int m = 1 + random.nextInt(5);
      int n = width(random);
      Matrix gate = bench.matrix(m, n, n + random.nextInt(5)).fill(random);
      Matrix up = bench.matrix(m, n, n + random.nextInt(5)).fill(random);
      float[] extremes = {0, -0f, 20, -20, 88, -88, 104, -104, 1e4f, -1e4f};
      for (int j = 0; j < n; j++) {
        gate.set(random.nextInt(m), j, extremes[random.nextInt(extremes.length)]);
      }
      check(
          bench,
          random,
          Math.ceilDiv(n, Kernels.ACTIVATION_BLOCK),
          gate,
          (kernels, y, begin, end, worker) ->
              kernels.siluMul(
                  gate.segment(), gate.ld(), up.segment(), up.ld(), m, floats(y), begin, end, worker),
          (kernels, y, begin, end, worker) ->
              kernels.siluMul(y.segment(), y.ld(), up.segment(), up.ld(), m, floats(y), begin, end, worker));
    }
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(DType.class)
  void siluMulWritesWhatPackingItWouldGive(DType dtype) {
    try (KernelBench bench = new KernelBench(implementation)) {
      int n = 2080;
      int blocks = n / Kernels.ACTIVATION_BLOCK;
      Random random = new Random(dtype.id());
      MemorySegment gate = bench.matrix(3, n, n).fill(random).segment();
      MemorySegment up = bench.matrix(3, n, n).fill(random).segment();
      Matrix product = bench.matrix(3, n, n);
      Kernels kernels = bench.kernels;
      kernels.siluMul(gate, n, up, n, 3, floats(product), 0, blocks, bench.worker);
      ActivationRows packed = bench.packRows(kernels, dtype, product, bench.worker);
      MemorySegment data = bench.arena.allocate(3 * packed.rowBytes(), 4);
      ActivationRows direct = new ActivationRows(packed.format(), n, packed.rowBytes(), data);
      kernels.siluMul(gate, n, up, n, 3, direct, 40, blocks, bench.worker);
      kernels.siluMul(gate, n, up, n, 3, direct, 0, 40, bench.worker);
      assertThat(data.mismatch(packed.data())).as("first byte that differs").isEqualTo(-1);
    }
  }

  /** Out of place against the oracle; then in pieces and in place, to the bit. */
  private static void check(
      KernelBench bench,
      Random random,
      int items,
      Matrix input,
      RowOperation operation,
      RowOperation inPlace) {
    Matrix y = bench.matrix(input.rows(), input.columns(), input.columns() + random.nextInt(5));
    Matrix expected = y.copy(bench.arena);
    Matrix pieces = y.copy(bench.arena);
    operation.run(bench.oracle, expected, 0, items, bench.oracleWorker);
    operation.run(bench.kernels, y, 0, items, bench.worker);
    bench.assertSameCounters();
    y.assertNear("y", expected, (i, j) -> RELATIVE * Math.abs(expected.get(i, j)) + TINY);
    y.assertPoisonUntouched("y");
    List<Integer> cuts = KernelBench.cuts(items, random);
    for (int c = cuts.size() - 1; c > 0; c--) {
      operation.run(bench.kernels, pieces, cuts.get(c - 1), cuts.get(c), bench.worker);
    }
    y.assertSameBits("y in pieces", pieces);
    Matrix own = input.copy(bench.arena);
    inPlace.run(bench.kernels, own, 0, items, bench.worker);
    own.assertPoisonUntouched("y in place");
    own.assertNear("y in place", y, (i, j) -> 0);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void rope(long seed) {
    try (KernelBench bench = new KernelBench(implementation)) {
      Random random = new Random(seed);
      RopePairing pairing = RopePairing.values()[(int) (seed % 2)];
      int[] headDims = {2, 32, 48, 64, 80, 96, 112, 128, 256};
      int headDim = headDims[random.nextInt(headDims.length)];
      int ropeDim = random.nextBoolean() ? headDim : 2 * (1 + random.nextInt(headDim / 2));
      int heads = 1 + random.nextInt(4);
      int tokens = 1 + random.nextInt(6);
      Matrix angles = bench.matrix(tokens, ropeDim, ropeDim);
      for (int t = 0; t < tokens; t++) {
        for (int pair = 0; pair < ropeDim / 2; pair++) {
          double angle = random.nextDouble() * 2 * Math.PI;
          angles.set(t, 2 * pair, (float) Math.cos(angle));
          angles.set(t, 2 * pair + 1, (float) Math.sin(angle));
        }
      }
      Matrix x = bench.matrix(tokens, heads * headDim, heads * headDim + random.nextInt(7)).fill(random);
      Matrix expected = x.copy(bench.arena);
      Matrix y = x.copy(bench.arena);
      Matrix pieces = x.copy(bench.arena);
      MemorySegment cosSin = angles.segment();
      bench.oracle.rope(
          pairing,
          ropeDim,
          cosSin,
          tokens,
          heads,
          headDim,
          expected.segment(),
          x.ld(),
          0,
          tokens,
          bench.oracleWorker);
      bench.kernels.rope(
          pairing, ropeDim, cosSin, tokens, heads, headDim, y.segment(), x.ld(), 0, tokens, bench.worker);
      bench.assertSameCounters();
      y.assertNear("x", expected, (i, j) -> 2e-6);
      y.assertPoisonUntouched("x");
      for (int h = 0; h < heads; h++) {
        for (int d = ropeDim; d < headDim; d++) {
          assertThat(y.get(0, h * headDim + d)).isEqualTo(x.get(0, h * headDim + d));
        }
      }
      List<Integer> cuts = KernelBench.cuts(tokens, random);
      for (int c = cuts.size() - 1; c > 0; c--) {
        bench.kernels.rope(
            pairing,
            ropeDim,
            cosSin,
            tokens,
            heads,
            headDim,
            pieces.segment(),
            x.ld(),
            cuts.get(c - 1),
            cuts.get(c),
            bench.worker);
      }
      y.assertSameBits("x in pieces", pieces);
    }
  }

  @Test
  void noRowsCountNothing() {
    try (KernelBench bench = new KernelBench(implementation)) {
      Matrix x = bench.matrix(2, 8, 8).fill(new Random(1));
      Matrix y = bench.matrix(2, 8, 8);
      bench.kernels.siluMul(x.segment(), 8, x.segment(), 8, 2, floats(y), 1, 1, bench.worker);
      bench.kernels.siluMul(x.segment(), 8, x.segment(), 8, 0, floats(y), 0, 1, bench.worker);
      bench.kernels.rmsNorm(x.segment(), 8, x.segment(), 0, 2, floats(y), 1, 1, bench.worker);
      assertThat(KernelBench.counters(bench.worker, Operation.SILU_MUL)).containsOnly(0L);
      assertThat(KernelBench.counters(bench.worker, Operation.RMS_NORM)).containsOnly(0L);
      y.assertSameBits("y", bench.matrix(2, 8, 8));
    }
  }

  /** Widths around vector lengths, and a long row. */
  private static int width(Random random) {
    int[] widths = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129, 1000};
    return widths[random.nextInt(widths.length)];
  }
}
