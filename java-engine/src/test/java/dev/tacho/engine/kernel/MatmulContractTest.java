package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

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
      Matrix x = bench.activations(dtype, m, k, k + random.nextInt(9), random);
      Matrix bias = bench.matrix(1, n, n).fill(random);
      MemorySegment biasOrNone = random.nextBoolean() ? bias.segment() : null;
      boolean accumulate = random.nextBoolean();
      Matrix y = bench.matrix(m, n, n + random.nextInt(9));
      if (accumulate) {
        y.fill(random);
      }
      Matrix expected = y.copy(bench.arena);
      Matrix pieces = y.copy(bench.arena);
      Matrix alone = y.copy(bench.arena);
      int groups = ArgumentChecks.rowGroups(n);
      ActivationRows oracleRows = bench.packRows(bench.oracle, dtype, x, bench.oracleWorker);
      ActivationRows rows = bench.packRows(bench.kernels, dtype, x, bench.worker);
      bench.oracle.matmul(
          oracleWeight,
          biasOrNone,
          oracleRows,
          m,
          expected.segment(),
          y.ld(),
          accumulate,
          0,
          groups,
          bench.oracleWorker);
      bench.kernels.matmul(
          weight, biasOrNone, rows, m, y.segment(), y.ld(), accumulate, 0, groups, bench.worker);
      bench.assertSameCounters();

      Matrix sizes = absoluteProducts(dtype, source, x, n, k, bench);
      y.assertNear("y of " + dtype, expected, (i, j) -> 1e-5 * (sizes.get(i, j) + 1));
      y.assertPoisonUntouched("y");

      List<Integer> cuts = KernelBench.cuts(groups, random);
      for (int c = cuts.size() - 1; c > 0; c--) {
        int from = cuts.get(c - 1);
        int to = cuts.get(c);
        bench.kernels.matmul(
            weight, biasOrNone, rows, m, pieces.segment(), y.ld(), accumulate, from, to, bench.worker);
      }
      y.assertSameBits("y in pieces", pieces);

      for (int i = 0; i < m; i++) {
        MemorySegment one = rows.data().asSlice(i * rows.rowBytes(), rows.rowBytes());
        ActivationRows row = new ActivationRows(rows.format(), k, rows.rowBytes(), one);
        bench.kernels.matmul(
            weight, biasOrNone, row, 1, alone.row(i), n, accumulate, 0, groups, bench.worker);
      }
      y.assertSameBits("y row by row", alone);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void codesOfActivationsAreTheSameForEveryProvider(long seed) {
    Random random = new Random(seed);
    int m = pick(ROWS, random);
    int k = pick(BLOCKS, random) * Kernels.ACTIVATION_BLOCK;
    try (KernelBench bench = new KernelBench(implementation)) {
      Matrix x = bench.matrix(m, k, k + random.nextInt(9)).fill(random);
      float[] odd = {
        0, -0f, Float.MIN_NORMAL, -3 * Float.MIN_VALUE, 1e30f, Float.MAX_VALUE, Float.NaN, Float.POSITIVE_INFINITY
      };
      for (int i = 0; i < k / 64; i++) {
        x.set(random.nextInt(m), random.nextInt(k), odd[random.nextInt(odd.length)]);
      }
      for (int j = 0; j < 32; j++) {
        x.set(0, j, (j - 16) * 1000 * Float.MIN_VALUE); // 127 / max|x| would overflow
      }
      ActivationRows rows = bench.packRows(bench.kernels, DType.Q8_0, x, bench.worker);
      assertThat(rows.format()).isEqualTo(ActivationFormat.INT8);
      Kernels scalar = Implementation.SCALAR.open();
      ActivationRows expected = bench.packRows(scalar, DType.Q8_0, x, bench.oracleWorker);
      for (int i = 0; i < m; i++) {
        for (int b = 0; b < k / 32; b++) {
          byte[] bytes = block(rows, i, b, implementation.activationBlockBytes());
          assertThat(bytes)
              .as("row %s, block %s", i, b)
              .isEqualTo(block(expected, i, b, Implementation.SCALAR.activationBlockBytes()));
          float scale = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getFloat(32);
          float largest = 0;
          for (int j = 32 * b; j < 32 * b + 32; j++) {
            largest = Math.max(largest, Math.abs(x.get(i, j)));
          }
          float factor = 127 / largest;
          if (!(largest <= Float.MAX_VALUE)) {
            assertThat(scale).isNaN();
          } else if (largest < 0x1p-119f) {
            assertThat(bytes).containsOnly(0);
          } else {
            assertThat(scale).isEqualTo(largest / 127);
            for (int j = 0; j < 32; j++) {
              assertThat((double) bytes[j]).isEqualTo(Math.rint(x.get(i, 32 * b + j) * factor) + 0.0);
            }
          }
        }
      }
    }
  }

  @ParameterizedTest(name = "{0} bytes")
  @ValueSource(longs = {1, 4096, 5_000_000})
  void allocatedMemoryIsZeroAlignedAndEndsWithItsArena(long bytes) {
    Kernels kernels = implementation.open();
    MemorySegment memory;
    try (Arena arena = Arena.ofShared()) {
      memory = kernels.allocate(arena, bytes);
      assertThat(memory.byteSize()).isEqualTo(bytes);
      assertThat(memory.address() % 64).isZero();
      assertThat(memory.mismatch(arena.allocate(bytes))).isEqualTo(-1);
      memory.fill((byte) 1);
    }
    assertThat(memory.scope().isAlive()).isFalse();
    try (Arena arena = Arena.ofShared()) {
      assertThatThrownBy(() -> kernels.allocate(arena, 1L << 46)).isInstanceOf(OutOfMemoryError.class);
    }
  }

  private static byte[] block(ActivationRows rows, int i, int b, int blockBytes) {
    return rows.data().asSlice(i * rows.rowBytes() + (long) b * blockBytes, 36).toArray(JAVA_BYTE);
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(DType.class)
  void aRowWithWhatIsNotFiniteGivesNoNumbersAndLeavesTheOthersAlone(DType dtype) {
    Random random = new Random(dtype.id());
    int k = Math.max(64, dtype.blockElements());
    try (KernelBench bench = new KernelBench(implementation)) {
      Weight weight =
          bench.pack(bench.kernels, dtype, 20, k, bench.fileBytes(dtype, 20, k, random), bench.worker);
      Matrix x = bench.matrix(8, k, k).fill(random);
      Matrix before = bench.matrix(8, 20, 20);
      bench.matmul(bench.kernels, weight, x, before, bench.worker);
      for (float bad : new float[] {Float.NaN, Float.NEGATIVE_INFINITY}) {
        x.set(3, 17, bad);
        Matrix after = bench.matrix(8, 20, 20);
        bench.matmul(bench.kernels, weight, x, after, bench.worker);
        for (int i = 0; i < 8; i++) {
          for (int j = 0; j < 20; j++) {
            if (i == 3) {
              assertThat(Float.isFinite(after.get(i, j))).as("%s at %s", bad, j).isFalse();
            } else {
              assertThat(after.get(i, j)).isEqualTo(before.get(i, j));
            }
          }
        }
      }
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
      Matrix x = bench.activations(dtype, 3, k, k, random);
      Matrix y = bench.matrix(3, n, n);
      Matrix expected = bench.matrix(3, n, n);
      bench.matmul(bench.oracle, oracleWeight, x, expected, bench.oracleWorker);
      bench.matmul(bench.kernels, weight, x, y, bench.worker);
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
      ActivationRows rows = bench.packRows(bench.kernels, dtype, x, bench.oracleWorker);
      bench.kernels.matmul(weight, null, rows, 1, y.segment(), 1, false, 0, 0, bench.worker);
      bench.kernels.matmul(weight, null, rows, 0, y.segment(), 1, false, 0, 1, bench.worker);
      bench.kernels.activationPack(x.segment(), k, 1, rows, 0, 0, bench.worker);
      bench.kernels.activationPack(x.segment(), k, 0, rows, 0, 1, bench.worker);
      assertThat(KernelBench.counters(bench.worker, Operation.ACTIVATION_PACK)).containsOnly(0L);
      assertThat(KernelBench.counters(bench.worker, Operation.MATMUL)).containsOnly(0L);
      y.assertSameBits("y", bench.matrix(1, 1, 1));
    }
  }

  private static int pick(int[] values, Random random) {
    return values[random.nextInt(values.length)];
  }
}
