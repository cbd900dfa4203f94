package dev.tacho.engine.kernel;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The contract of attention, for every provider. Values are normally distributed and their weights sum to 1, so an
 * output may differ from the oracle's by 1e-5; a sequence's results do not depend on the rest of the batch, on the
 * split of the items or on how its tokens were cut into steps, bit by bit.
 */
@ParameterizedClass(name = "{0}")
@MethodSource("dev.tacho.engine.kernel.Implementation#available")
class AttentionContractTest {
  private static final double TOLERANCE = 1e-5;
  private static final int[] HEAD_DIMS = {32, 48, 64, 80, 96, 112, 128, 40, 6};
  private static final int[] GROUPS = {1, 3, 7, 8};
  private static final int[] BEFORE = {0, 1, 15, 16, 17, 47, 48, 63, 64, 65, 130, 500, 1030};
  private static final int[] QUERIES = {1, 1, 2, 15, 16, 17, 31, 32, 33, 40};

  private static final int[] PRODUCT_HEAD_DIMS = {32, 64, 80, 96, 112, 128, 256};
  private static final int[] LENGTHS = {0, 1, 15, 16, 17, 1000, 4097};
  private static final DType[] KV_TYPES = {DType.F32, DType.F16, DType.BF16, DType.Q8_0};
  private static final List<String> FEATURES = List.of("plain", "window", "softcap", "sinks");
  private static final int[] WORKERS = {1, 3};

  private final Implementation implementation;

  AttentionContractTest(Implementation implementation) {
    this.implementation = implementation;
  }

  static LongStream seeds() {
    return LongStream.rangeClosed(1, 24);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void userCase28AMixedBatchEqualsTheOracleInAnySplit(long seed) {
    Random random = new Random(seed);
    try (KernelBench bench = new KernelBench(implementation)) {
      AttentionCase attention = mixed(bench, random);
      AttentionBatch batch = attention.batch(1 + random.nextInt(4));
      Matrix expected = attention.out();
      Matrix out = attention.out();
      Matrix pieces = attention.out();
      int items = batch.numItems();
      attention.run(bench.oracle, batch, 0, expected, 0, items, bench.oracleWorker);
      attention.run(bench.kernels, batch, 0, out, 0, items, bench.worker);
      bench.assertSameCounters();
      out.assertNear("out", expected, (i, j) -> TOLERANCE);
      out.assertPoisonUntouched("out");
      List<Integer> cuts = KernelBench.cuts(items, random);
      for (int c = cuts.size() - 1; c > 0; c--) {
        attention.run(bench.kernels, batch, 0, pieces, cuts.get(c - 1), cuts.get(c), bench.worker);
      }
      out.assertSameBits("out in pieces", pieces);
      AttentionBatch forOne = attention.batch(1);
      attention.run(bench.kernels, forOne, 0, pieces, 0, forOne.numItems(), bench.worker);
      out.assertSameBits("out planned for one worker", pieces);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {101, 102, 103, 104, 105, 106, 107, 108})
  void aSequenceAloneGivesTheBitsThatItGivesInABatch(long seed) {
    Random random = new Random(seed);
    try (KernelBench bench = new KernelBench(implementation)) {
      List<AttentionCase.Sequence> sequences = sequences(random);
      AttentionCase attention = new AttentionCase(bench, pick(HEAD_DIMS, random), 2, 3, sequences, random);
      AttentionBatch batch = attention.batch(3);
      Matrix together = attention.out();
      Matrix alone = attention.out();
      attention.run(bench.kernels, batch, 0, together, 0, batch.numItems(), bench.worker);
      int row = 0;
      for (int i = 0; i < sequences.size(); i++) {
        AttentionCase.Sequence sequence = sequences.get(i);
        AttentionBatch part = attention.part(i, sequence.queries(), sequence.context());
        attention.run(bench.kernels, part, row, alone, 0, part.numItems(), bench.worker);
        row += sequence.queries();
      }
      together.assertSameBits("out of each alone", alone);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {201, 202, 203, 204, 205, 206})
  void aPromptInChunksGivesTheBitsThatItGivesAtOnce(long seed) {
    Random random = new Random(seed);
    try (KernelBench bench = new KernelBench(implementation)) {
      int tokens = 100 + random.nextInt(30) + random.nextInt(2) * 480;
      AttentionCase attention =
          new AttentionCase(
              bench, 32, 1, pick(GROUPS, random), List.of(new AttentionCase.Sequence(0, tokens)), random);
      AttentionBatch batch = attention.batch(2);
      Matrix atOnce = attention.out();
      Matrix inChunks = attention.out();
      attention.run(bench.kernels, batch, 0, atOnce, 0, batch.numItems(), bench.worker);
      for (int at = 0; at < tokens; ) {
        int chunk = Math.min(random.nextBoolean() ? 1 : 1 + random.nextInt(40), tokens - at);
        AttentionBatch part = attention.part(0, chunk, at + chunk);
        attention.run(bench.kernels, part, at, inChunks, 0, part.numItems(), bench.worker);
        at += chunk;
      }
      atOnce.assertSameBits("out in chunks", inChunks);
    }
  }

  /** What a case of the product is made of: an index into each of the lists. */
  static Stream<Arguments> product() {
    int[] sizes = {
      PRODUCT_HEAD_DIMS.length, GROUPS.length, LENGTHS.length, KV_TYPES.length, FEATURES.size(), WORKERS.length
    };
    List<int[]> cases = Boolean.getBoolean("tacho.full") ? Combinations.all(sizes) : Combinations.pairwise(sizes);
    return cases.stream()
        .map(
            c ->
                Arguments.of(
                    PRODUCT_HEAD_DIMS[c[0]],
                    GROUPS[c[1]],
                    LENGTHS[c[2]],
                    KV_TYPES[c[3]],
                    FEATURES.get(c[4]),
                    WORKERS[c[5]]));
  }

  @ParameterizedTest(name = "head size {0}, {1} heads a kv head, {2} tokens before, {3}, {4}, {5} workers")
  @MethodSource("product")
  void theProductEqualsTheOracle(
      int headDim, int group, int before, DType dtype, String feature, int workers) {
    Random random = new Random(Objects.hash(headDim, group, before, dtype.id(), feature, workers));
    try (KernelBench bench = new KernelBench(implementation)) {
      AttentionShape shape =
          AttentionCase.shape(
              bench,
              headDim,
              2,
              group,
              feature.equals("window") ? Math.max(1, before - 20) : 0,
              feature.equals("softcap") ? 3 : 0,
              feature.equals("sinks"),
              random);
      List<AttentionCase.Sequence> sequences =
          List.of(new AttentionCase.Sequence(before, 1), new AttentionCase.Sequence(before % 100, 3));
      AttentionCase attention = new AttentionCase(bench, shape, dtype, sequences, random);
      AttentionBatch batch = attention.batch(workers);
      Matrix expected = attention.out();
      Matrix out = attention.out();
      attention.run(bench.oracle, batch, 0, expected, 0, batch.numItems(), bench.oracleWorker);
      attention.run(bench.kernels, batch, 0, out, 0, batch.numItems(), bench.worker);
      bench.assertSameCounters();
      out.assertNear("out", expected, (i, j) -> TOLERANCE);
      out.assertPoisonUntouched("out");
    }
  }

  private static AttentionCase mixed(KernelBench bench, Random random) {
    int headDim = pick(HEAD_DIMS, random);
    int kvHeads = 1 + random.nextInt(2);
    return new AttentionCase(bench, headDim, kvHeads, pick(GROUPS, random), sequences(random), random);
  }

  private static List<AttentionCase.Sequence> sequences(Random random) {
    List<AttentionCase.Sequence> sequences = new ArrayList<>();
    for (int i = 1 + random.nextInt(3); i > 0; i--) {
      sequences.add(new AttentionCase.Sequence(pick(BEFORE, random), pick(QUERIES, random)));
    }
    return sequences;
  }

  private static int pick(int[] values, Random random) {
    return values[random.nextInt(values.length)];
  }
}
