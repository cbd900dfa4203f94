package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AttentionBatchTest {
  private static final int MAX_SEQUENCES = 9;
  private static final int MAX_TOKENS = 700;
  private static final int MAX_BLOCKS = 600;

  private static AttentionBatch batch(int workers, int kvHeads, int group) {
    AttentionShape shape = new AttentionShape(kvHeads * group, kvHeads, 64, 1, 0, 0, null);
    AttentionBatch batch = new AttentionBatch(Arena.ofAuto(), MAX_SEQUENCES, MAX_TOKENS, MAX_BLOCKS, workers, shape);
    batch.clear();
    return batch;
  }

  /** Prefills and decodes, of short and long contexts. */
  private static void planAnyStep(AttentionBatch batch, Random random) {
    batch.clear();
    int sequences = 1 + random.nextInt(MAX_SEQUENCES);
    for (int s = 0; s < sequences; s++) {
      int queries = random.nextBoolean() ? 1 : 1 + random.nextInt(MAX_TOKENS / MAX_SEQUENCES);
      batch.addSequence(queries, queries + random.nextInt(random.nextBoolean() ? 100 : 9000));
    }
    batch.plan();
  }

  /** Keys times queries of an item, the edge of the causal triangle apart. */
  private static long work(AttentionBatch batch, int item) {
    int sequence = batch.itemSequence(item);
    int keys = batch.contextLen(sequence) - batch.queryCount(sequence) + batch.itemQueryEnd(item);
    int end = Math.min(keys, batch.itemSplitEnd(item) * AttentionBatch.SPLIT_KEYS);
    int queries = batch.itemQueryEnd(item) - batch.itemQueryBegin(item);
    return (end - (long) batch.itemSplitBegin(item) * AttentionBatch.SPLIT_KEYS) * queries;
  }

  @ParameterizedTest(name = "{0} workers, {1} kv heads, {2} tokens")
  @CsvSource({"2, 1, 4096", "4, 1, 9600", "4, 2, 4096", "8, 4, 9000", "3, 2, 6000"})
  void oneLongSequenceKeepsAllWorkersBusy(int workers, int kvHeads, int tokens) {
    AttentionBatch batch = batch(workers, kvHeads, 3);
    batch.addSequence(1, tokens);
    batch.plan();
    long most = 0;
    long all = 0;
    for (int worker = 0; worker < workers; worker++) {
      long share = 0;
      for (int item = batch.begin(worker); item < batch.end(worker); item++) {
        share += work(batch, item);
      }
      most = Math.max(most, share);
      all += share;
    }
    assertThat(all).isEqualTo((long) tokens * kvHeads);
    assertThat((double) most).isLessThanOrEqualTo(1.4 * all / workers);
  }

  @Test
  void aSingleWorkerAndShortContextsNeedNoPartials() {
    AttentionBatch alone = batch(1, 2, 3);
    alone.addSequence(1, 9000);
    alone.plan();
    assertThat(alone.numItems()).isEqualTo(2);
    assertThat(alone.itemPartial(0)).isEqualTo(-1);
    assertThat(alone.itemSplitEnd(0)).isEqualTo(18);
    assertThat(alone.numPartials()).isZero();
    AttentionBatch team = batch(8, 2, 3);
    team.addSequence(1, 512);
    team.plan();
    assertThat(team.numItems()).isEqualTo(2);
    assertThat(team.itemPartial(1)).isEqualTo(-1);
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  void itemsHoldEverySplitOfEveryTileOnceAndSharesEveryItemOnce(long seed) {
    Random random = new Random(seed);
    int workers = 1 + random.nextInt(9);
    int group = 1 + random.nextInt(4);
    AttentionBatch batch = batch(workers, 2, group);
    for (int step = 0; step < 3; step++) {
      planAnyStep(batch, random);
      boolean[] rows = new boolean[batch.numPartials()];
      int item = 0;
      while (item < batch.numItems()) {
        int rowsOfTile = (batch.itemQueryEnd(item) - batch.itemQueryBegin(item)) * group;
        int splits = batch.tileSplits(item);
        int partial = batch.itemPartial(item);
        if (partial >= 0) {
          for (int row = partial; row < partial + splits * rowsOfTile; row++) {
            assertThat(rows[row]).as("seed %d, partial %d is another tile's", seed, row).isFalse();
            rows[row] = true;
          }
        }
        int first = item;
        for (int split = 0; split < splits; item++) {
          assertThat(batch.itemSplitBegin(item)).isEqualTo(split);
          assertThat(batch.itemPartial(item)).isEqualTo(partial);
          assertThat(batch.itemTicket(item)).isEqualTo(batch.itemTicket(first));
          assertThat(batch.itemQueryBegin(item)).isEqualTo(batch.itemQueryBegin(first));
          split = batch.itemSplitEnd(item);
        }
        assertThat(partial == -1).isEqualTo(item - first == 1);
        for (int i = first; i < item; i++) {
          assertThat(batch.arrive(i)).as("item %d of [%d, %d)", i, first, item).isEqualTo(i == item - 1);
        }
      }
      assertThat(batch.begin(0)).isZero();
      for (int worker = 0; worker < workers; worker++) {
        assertThat(batch.end(worker)).isGreaterThanOrEqualTo(batch.begin(worker));
        assertThat(batch.end(worker)).isEqualTo(worker + 1 < workers ? batch.begin(worker + 1) : batch.numItems());
      }
      assertThat(batch.tickets().toArray(JAVA_INT)).containsOnly(0);
    }
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  void headsThatCanBeSharedEvenlyStayWithTheirWorkerWhateverTheBatch(long seed) {
    Random random = new Random(seed);
    int workers = 1 + random.nextInt(4);
    int headsOfWorker = 1 + random.nextInt(3);
    AttentionBatch batch = batch(workers, workers * headsOfWorker, 1 + random.nextInt(4));
    for (int step = 0; step < 5; step++) {
      planAnyStep(batch, random);
      assertThat(batch.sharesHeads()).isTrue();
      for (int worker = 0; worker < workers; worker++) {
        assertThat(batch.begin(worker)).isLessThan(batch.end(worker));
        for (int item = batch.begin(worker); item < batch.end(worker); item++) {
          assertThat(batch.itemKvHead(item) / headsOfWorker).as("seed %d, item %d", seed, item).isEqualTo(worker);
          assertThat(batch.itemPartial(item)).as("nothing is left for others").isEqualTo(-1);
        }
      }
    }
    assertThat(batch(workers + 1, workers, 1).sharesHeads()).isFalse();
  }

  @Test
  void bytesAreThoseThatAreTaken() {
    AttentionBatch batch = batch(4, 2, 3);
    AttentionShape shape = new AttentionShape(6, 2, 64, 1, 0, 0, null);
    long taken =
        batch.qStarts().byteSize() + batch.contextLens().byteSize() + batch.blockTable().byteSize()
            + batch.items().byteSize() + batch.partials().byteSize() + batch.tickets().byteSize();
    assertThat(AttentionBatch.bytes(MAX_SEQUENCES, MAX_TOKENS, MAX_BLOCKS, 4, shape)).isEqualTo(taken);
    assertThat(Arrays.asList(batch.numTickets(), batch.numPartials())).containsExactly(16, 16 * 19 * 3);
  }
}
