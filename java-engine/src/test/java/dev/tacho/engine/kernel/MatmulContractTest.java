package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The contract of weights, matmul and embedding look-up, for every provider. An output may differ from the oracle's by
 * 1e-5 of the sum of its absolute products; a looked-up row not at all.
 */
@ParameterizedClass(name = "{0}")
@MethodSource("dev.tacho.engine.kernel.Implementation#available")
class MatmulContractTest {
  private static final int[] ROWS = {1, 2, 3, 4, 5, 6, 7, 8, 13, 17};
  private static final int[] COLUMNS = {1, 15, 16, 17, 31, 32, 33, 48, 100};
  private static final int[] BLOCKS = {1, 2, 3, 8, 9, 17};

  private final Implementation implementation;

  MatmulContractTest(Implementation implementation) {
    this.implementation = implementation;
  }

  static LongStream seeds() {
    return LongStream.rangeClosed(1, 50);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void userCase28MatmulEqualsTheOracleInAnySplitAndBatch(long seed) {
    Random random = new Random(seed);
    DType dtype = DType.values()[(int) (seed % DType.values().length)];
    int m = pick(ROWS, random);
    int n = pick(COLUMNS, random);
    int k = dtype.blockElements() == 1 ? 1 + random.nextInt(300) : pick(BLOCKS, random) * dtype.blockElements();
    try (KernelBench bench = new KernelBench(implementation)) {
      MemorySegment source = bench.fileBytes(dtype, n, k, random);
      Weight weight = bench.pack(bench.kernels, dtype, n, k, source, bench.worker);
      Weight oracleWeight = bench.pack(bench.oracle, dtype, n, k, source, bench.oracleWorker);
      Matrix x = bench.matrix(m, k, k + random.nextInt(9)).fill(random);
      Matrix bias = bench.matrix(1, n, n).fill(random);
      MemorySegment biasOrNone = random.nextBoolean() ? bias.segment() : null;
      Matrix y = bench.matrix(m, n, n + random.nextInt(9));
      Matrix expected = y.copy(bench.arena);
      Matrix pieces = y.copy(bench.arena);
      Matrix alone = y.copy(bench.arena);
      int groups = ArgumentChecks.rowGroups(n);
      bench.oracle.matmul(
          oracleWeight, biasOrNone, x.segment(), x.ld(), m, expected.segment(), y.ld(), 0, groups, bench.oracleWorker);
      bench.kernels.matmul(weight, biasOrNone, x.segment(), x.ld(), m, y.segment(), y.ld(), 0, groups, bench.worker);
      bench.assertSameCounters();

      Matrix sizes = absoluteProducts(dtype, source, x, n, k, bench);
      y.assertNear("y of " + dtype, expected, (i, j) -> 1e-5 * (sizes.get(i, j) + 1));
      y.assertPoisonUntouched("y");

      List<Integer> cuts = KernelBench.cuts(groups, random);
      for (int c = cuts.size() - 1; c > 0; c--) {
        bench.kernels.matmul(
            weight,
            biasOrNone,
            x.segment(),
            x.ld(),
            m,
            pieces.segment(),
            y.ld(),
            cuts.get(c - 1),
            cuts.get(c),
            bench.worker);
      }
      y.assertSameBits("y in pieces", pieces);

      for (int i = 0; i < m; i++) {
        bench.kernels.matmul(weight, biasOrNone, x.row(i), k, 1, alone.row(i), n, 0, groups, bench.worker);
      }
      y.assertSameBits("y row by row", alone);
    }
  }

  /** sum_j |x[i][j]| |w[row][j]|, by the definition of the file layout. */
  private static Matrix absoluteProducts(DType dtype, MemorySegment source, Matrix x, int n, int k, KernelBench bench) {
    Matrix sizes = bench.matrix(x.rows(), n, n);
    for (int i = 0; i < x.rows(); i++) {
      for (int row = 0; row < n; row++) {
        double sum = 0;
        for (int j = 0; j < k; j++) {
          sum += Math.abs(x.get(i, j) * ReferenceKernels.element(dtype, source, (long) row * k + j));
        }
        sizes.set(i, row, (float) sum);
      }
    }
    return sizes;
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(DType.class)
  void embeddingLookupGivesTheExactRowsInAnySplit(DType dtype) {
    Random random = new Random(dtype.id() + 100);
    int n = 37;
    int k = dtype.blockElements() * 3;
    int m = 50;
    try (KernelBench bench = new KernelBench(implementation)) {
      MemorySegment source = bench.fileBytes(dtype, n, k, random);
      Weight table = bench.pack(bench.kernels, dtype, n, k, source, bench.worker);
      Weight oracleTable = bench.pack(bench.oracle, dtype, n, k, source, bench.oracleWorker);
      MemorySegment ids = bench.arena.allocate(JAVA_INT, m);
      for (int i = 0; i < m; i++) {
        ids.setAtIndex(JAVA_INT, i, i < n ? i : random.nextInt(n));
      }
      Matrix y = bench.matrix(m, k, k + 5);
      Matrix expected = y.copy(bench.arena);
      bench.oracle.embeddingLookup(
          oracleTable, ids, m, expected.segment(), expected.ld(), 0, m, bench.oracleWorker);
      bench.kernels.embeddingLookup(table, ids, m, y.segment(), y.ld(), 0, m, bench.worker);
      bench.assertSameCounters();
      y.assertNear("y", expected, (i, j) -> 0);
      y.assertPoisonUntouched("y");

      Matrix pieces = bench.matrix(m, k, k + 5);
      List<Integer> cuts = KernelBench.cuts(m, random);
      for (int c = 1; c < cuts.size(); c++) {
        bench.kernels.embeddingLookup(
            table, ids, m, pieces.segment(), pieces.ld(), cuts.get(c - 1), cuts.get(c), bench.worker);
      }
      y.assertSameBits("y in pieces", pieces);
    }
  }

  /** A long row: where one float32 chain over all of k would show. */
  @ParameterizedTest(name = "{0}")
  @EnumSource(DType.class)
  void aLongRowKeepsItsAccuracy(DType dtype) {
    Random random = new Random(dtype.id() + 7);
    int k = 4096 + dtype.blockElements();
    int n = 16;
    try (KernelBench bench = new KernelBench(implementation)) {
      MemorySegment source = bench.fileBytes(dtype, n, k, random);
      Weight weight = bench.pack(bench.kernels, dtype, n, k, source, bench.worker);
      Weight oracleWeight = bench.pack(bench.oracle, dtype, n, k, source, bench.oracleWorker);
      Matrix x = bench.matrix(3, k, k).fill(random);
      Matrix y = bench.matrix(3, n, n);
      Matrix expected = bench.matrix(3, n, n);
      bench.oracle.matmul(oracleWeight, null, x.segment(), k, 3, expected.segment(), n, 0, 1, bench.oracleWorker);
      bench.kernels.matmul(weight, null, x.segment(), k, 3, y.segment(), n, 0, 1, bench.worker);
      Matrix sizes = absoluteProducts(dtype, source, x, n, k, bench);
      y.assertNear("y of " + dtype, expected, (i, j) -> 2e-6 * sizes.get(i, j));
    }
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(DType.class)
  void noRowsAndNoItemsDoNothingAndCountNothing(DType dtype) {
    int k = dtype.blockElements();
    try (KernelBench bench = new KernelBench(implementation)) {
      MemorySegment source = bench.fileBytes(dtype, 1, k, new Random(1));
      Weight weight = bench.pack(bench.kernels, dtype, 1, k, source, bench.worker);
      Matrix x = bench.matrix(1, k, k);
      Matrix y = bench.matrix(1, 1, 1);
      bench.kernels.matmul(weight, null, x.segment(), k, 1, y.segment(), 1, 0, 0, bench.worker);
      bench.kernels.matmul(weight, null, x.segment(), k, 0, y.segment(), 1, 0, 1, bench.worker);
      assertThat(KernelBench.counters(bench.worker, Operation.MATMUL)).containsOnly(0L);
      y.assertSameBits("y", bench.matrix(1, 1, 1));
    }
  }

  private static int pick(int[] values, Random random) {
    return values[random.nextInt(values.length)];
  }
}
