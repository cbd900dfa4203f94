package dev.tacho.engine.kernel;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
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
  private static final int[] HEAD_DIMS = {32, 48, 64, 80, 96, 112, 128, 256, 40, 6};
  private static final int[] GROUPS = {1, 3, 7, 8};
  private static final int[] BEFORE = {0, 1, 15, 16, 17, 47, 48, 63, 64, 65, 130};
  private static final int[] QUERIES = {1, 1, 2, 15, 16, 17, 31, 32, 33, 40};

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
      AttentionBatch batch = attention.batch();
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
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {101, 102, 103, 104, 105, 106, 107, 108})
  void aSequenceAloneGivesTheBitsThatItGivesInABatch(long seed) {
    Random random = new Random(seed);
    try (KernelBench bench = new KernelBench(implementation)) {
      List<AttentionCase.Sequence> sequences = sequences(random);
      AttentionCase attention = new AttentionCase(bench, pick(HEAD_DIMS, random), 2, 3, sequences, random);
      AttentionBatch batch = attention.batch();
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
      int tokens = 100 + random.nextInt(30);
      AttentionCase attention =
          new AttentionCase(
              bench, 32, 1, pick(GROUPS, random), List.of(new AttentionCase.Sequence(0, tokens)), random);
      AttentionBatch batch = attention.batch();
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

  @ParameterizedTest(name = "{0} tokens before, head size {1}, {2} heads a kv head")
  @CsvSource({
    "0, 64, 1", "1, 64, 8", "15, 80, 3", "16, 96, 7", "17, 112, 1", "1000, 128, 3", "1000, 256, 8", "999, 48, 7"
  })
  void aDecodeAtTheBordersOfBlocksEqualsTheOracle(int before, int headDim, int group) {
    Random random = new Random(before * 31L + headDim);
    try (KernelBench bench = new KernelBench(implementation)) {
      AttentionCase attention =
          new AttentionCase(
              bench, headDim, 2, group, List.of(new AttentionCase.Sequence(before, 1)), random);
      AttentionBatch batch = attention.batch();
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
