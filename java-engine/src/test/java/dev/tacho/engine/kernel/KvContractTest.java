package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The contract of kv_write and kv_copy_blocks, for every provider: the caches equal the oracle's to the bit. */
@ParameterizedClass(name = "{0}")
@MethodSource("dev.tacho.engine.kernel.Implementation#available")
class KvContractTest {
  private final Implementation implementation;

  KvContractTest(Implementation implementation) {
    this.implementation = implementation;
  }

  static LongStream seeds() {
    return LongStream.rangeClosed(1, 24);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void kvWriteFillsTheSlotsAndNothingElse(long seed) {
    Random random = new Random(seed);
    DType dtype = new DType[] {DType.F32, DType.F16, DType.BF16, DType.Q8_0}[(int) (seed % 4)];
    int headDim = new int[] {2, 30, 32, 48, 80, 128}[random.nextInt(6)];
    int kvHeads = 1 + random.nextInt(4);
    int tokens = 1 + random.nextInt(40);
    int blocks = 8;
    try (KernelBench bench = new KernelBench(implementation)) {
      int columns = kvHeads * headDim;
      Matrix k = bench.matrix(tokens, columns, columns + random.nextInt(5));
      Matrix v = bench.matrix(tokens, columns, columns + random.nextInt(5));
      for (int i = 0; i < tokens; i++) {
        for (int j = 0; j < columns; j++) {
          k.set(i, j, value(random));
          v.set(i, j, value(random));
        }
      }
      MemorySegment slots = bench.arena.allocate(JAVA_LONG, tokens);
      List<Integer> order = new ArrayList<>(IntStream.range(0, blocks * 16).boxed().toList());
      Collections.shuffle(order, random);
      for (int i = 0; i < tokens; i++) {
        slots.setAtIndex(JAVA_LONG, i, random.nextInt(5) == 0 ? -1 : order.get(i));
      }
      KvCacheLayer cache = cache(bench, dtype, blocks, kvHeads, headDim);
      KvCacheLayer expected = cache(bench, dtype, blocks, kvHeads, headDim);
      List<Integer> cuts = KernelBench.cuts(kvHeads, random);
      for (int c = 1; c < cuts.size(); c++) {
        write(bench.oracle, expected, slots, k, v, cuts.get(c - 1), cuts.get(c), bench.oracleWorker);
        write(bench.kernels, cache, slots, k, v, cuts.get(c - 1), cuts.get(c), bench.worker);
      }
      bench.assertSameCounters();
      assertThat(cache.k().mismatch(expected.k())).as("first byte of K that differs").isEqualTo(-1);
      assertThat(cache.v().mismatch(expected.v())).as("first byte of V that differs").isEqualTo(-1);
    }
  }

  /** Of any size that a half can hold, denormal ones and exact ties among them. */
  private static float value(Random random) {
    float value = (float) Math.scalb(random.nextGaussian(), random.nextInt(36) - 26);
    return random.nextBoolean() ? value : Float.intBitsToFloat(Float.floatToRawIntBits(value) & 0xfffff000);
  }

  private static KvCacheLayer cache(KernelBench bench, DType dtype, int blocks, int kvHeads, int headDim) {
    long bytes = blocks * KvCacheLayer.blockBytes(dtype, kvHeads, headDim);
    MemorySegment k = bench.arena.allocate(bytes, 64);
    MemorySegment v = bench.arena.allocate(bytes, 64);
    KernelBench.poison(k);
    KernelBench.poison(v);
    return new KvCacheLayer(dtype, blocks, kvHeads, headDim, k, v);
  }

  private static void write(
      Kernels kernels,
      KvCacheLayer cache,
      MemorySegment slots,
      Matrix k,
      Matrix v,
      int begin,
      int end,
      KernelWorker worker) {
    kernels.kvWrite(cache, slots, k.rows(), k.segment(), k.ld(), v.segment(), v.ld(), begin, end, worker);
  }

  @ParameterizedTest(name = "{0}")
  @ValueSource(floats = {0, 1e-38f, 3e-6f, 1e-3f, 8e6f, 8.4e6f, Float.MAX_VALUE, Float.POSITIVE_INFINITY, Float.NaN})
  void groupsOf8BitsThatNoScaleFitsAreZeroOrNan(float extreme) {
    try (KernelBench bench = new KernelBench(implementation)) {
      Matrix k = bench.matrix(1, 48, 48);
      for (int j = 0; j < 48; j++) {
        k.set(0, j, j == 40 ? extreme : j < 32 ? j : extreme / 64);
      }
      MemorySegment slots = bench.arena.allocate(JAVA_LONG, 1);
      slots.set(JAVA_LONG, 0, 17);
      KvCacheLayer cache = cache(bench, DType.Q8_0, 2, 1, 48);
      KvCacheLayer expected = cache(bench, DType.Q8_0, 2, 1, 48);
      write(bench.kernels, cache, slots, k, k, 0, 1, bench.worker);
      write(bench.oracle, expected, slots, k, k, 0, 1, bench.oracleWorker);
      assertThat(cache.k().mismatch(expected.k())).isEqualTo(-1);
      assertThat(cache.v().mismatch(expected.v())).isEqualTo(-1);
      long panel = cache.headOffset(1, 0);
      float found = cache.value(panel, 1, 40);
      if (!(extreme < 8.3e6f)) {
        assertThat(found).isNaN();
      } else {
        assertThat(found).isCloseTo(extreme < 3.5e-6f ? 0 : extreme, within(extreme / 100));
      }
      assertThat(cache.key(panel, 1, 31)).isCloseTo(31, within(0.02f));
    }
  }

  @ParameterizedTest(name = "{0}")
  @EnumSource(value = DType.class, names = {"F32", "F16", "BF16"})
  void valuesOutsideTheTypeBecomeInfinityAndNanStaysNan(DType dtype) {
    try (KernelBench bench = new KernelBench(implementation)) {
      float[] values = {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, Float.MAX_VALUE, -1e6f, 65504};
      Matrix k = bench.matrix(1, values.length, values.length);
      for (int j = 0; j < values.length; j++) {
        k.set(0, j, values[j]);
      }
      MemorySegment slots = bench.arena.allocate(JAVA_LONG, 1);
      slots.set(JAVA_LONG, 0, 17);
      KvCacheLayer cache = cache(bench, dtype, 2, 1, values.length);
      write(bench.kernels, cache, slots, k, k, 0, 1, bench.worker);
      float[] found = new float[values.length];
      for (int d = 0; d < values.length; d++) {
        found[d] = Elements.get(dtype, cache.v(), cache.headOffset(1, 0), values.length + d);
        float key = Elements.get(dtype, cache.k(), cache.headOffset(1, 0), 16L * d + 1);
        assertThat(Float.compare(key, found[d])).isZero();
      }
      float infinity = Float.POSITIVE_INFINITY;
      float[] expected =
          switch (dtype) {
            case F16 -> new float[] {Float.NaN, infinity, -infinity, infinity, -infinity, 65504};
            case BF16 -> new float[] {Float.NaN, infinity, -infinity, infinity, -999424, 65536};
            default -> values;
          };
      assertThat(found).isEqualTo(expected);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void kvCopyBlocksCopiesThePairsInEachCache(long seed) {
    Random random = new Random(seed);
    int blocks = 9;
    long blockBytes = new long[] {1, 63, 64, 1024, 4099}[random.nextInt(5)];
    int numCaches = 1 + random.nextInt(4);
    try (KernelBench bench = new KernelBench(implementation)) {
      MemorySegment[] caches = new MemorySegment[numCaches];
      MemorySegment[] expected = new MemorySegment[numCaches];
      byte[] bytes = new byte[(int) (blocks * blockBytes)];
      for (int i = 0; i < numCaches; i++) {
        random.nextBytes(bytes);
        caches[i] = bench.arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
        expected[i] = bench.arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
      }
      long[][] all = {{1, 4}, {2, 5}, {1, 6}, {3, 0}};
      int numPairs = random.nextInt(all.length + 1);
      MemorySegment pairs = bench.arena.allocate(JAVA_LONG, 2L * numPairs + 1);
      for (int i = 0; i < 2 * numPairs; i++) {
        pairs.setAtIndex(JAVA_LONG, i, all[i / 2][i % 2]);
      }
      List<Integer> cuts = KernelBench.cuts(numCaches * numPairs, random);
      for (int c = 1; c < cuts.size(); c++) {
        bench.oracle.kvCopyBlocks(
            expected, blockBytes, blocks, pairs, numPairs, cuts.get(c - 1), cuts.get(c), bench.oracleWorker);
        bench.kernels.kvCopyBlocks(
            caches, blockBytes, blocks, pairs, numPairs, cuts.get(c - 1), cuts.get(c), bench.worker);
      }
      bench.assertSameCounters();
      for (int i = 0; i < numCaches; i++) {
        assertThat(caches[i].mismatch(expected[i])).as("first byte of cache %d that differs", i).isEqualTo(-1);
      }
    }
  }
}
