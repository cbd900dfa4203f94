package dev.tacho.engine.kv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tacho.metrics.stats.ResidencySampler;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KvBlockPoolTest {
  private static BlockTable take(KvBlockPool pool, int count) {
    BlockTable table = new BlockTable();
    pool.allocate(count, table);
    return table;
  }

  private static long[] hash(long of) {
    return new long[] {of, of + 1, of + 2, of + 3};
  }

  @Test
  void handsOutInOrderAndNeverTheNullBlock() {
    KvBlockPool pool = new KvBlockPool(4, 16, false);
    assertThat(pool.usage()).isZero();
    BlockTable table = take(pool, 3);
    assertThat(new int[] {table.block(0), table.block(1), table.block(2)}).containsExactly(1, 2, 3);
    assertThat(pool.usage()).isEqualTo(1.0);
    assertThatThrownBy(() -> take(pool, 1)).hasMessage("1 blocks asked for, 0 are free");
    pool.release(table);
    assertThat(table.size()).isZero();
    assertThat(pool.freeList()).containsExactly(3, 2, 1);
  }

  @Test
  void cachedBlocksGoBehindAndTheRestInFront() {
    KvBlockPool pool = new KvBlockPool(6, 4, true);
    BlockTable table = take(pool, 3);
    pool.publish(1, hash(10), 0, 0);
    pool.publish(2, hash(20), 0, 0);
    pool.release(table);
    assertThat(pool.freeList()).containsExactly(3, 4, 5, 2, 1);
    assertThat(pool.find(hash(10), 0, 0)).isEqualTo(1);
    assertThat(pool.usage()).as("cached blocks without owner are free").isZero();

    take(pool, 4);
    assertThat(pool.find(hash(20), 0, 0)).as("evicted when handed out").isEqualTo(-1);
    assertThat(pool.find(hash(10), 0, 0)).isEqualTo(1);
  }

  @Test
  void aHitTakesABlockOutOfTheFreeListOnce() {
    KvBlockPool pool = new KvBlockPool(4, 4, true);
    BlockTable first = take(pool, 1);
    pool.publish(1, hash(1), 0, 0);
    pool.release(first);
    pool.touch(1);
    pool.touch(1);
    assertThat(pool.numFree()).isEqualTo(2);
    assertThat(pool.references(1)).isEqualTo(2);
    BlockTable owner = new BlockTable();
    owner.append(1);
    pool.release(owner);
    assertThat(pool.numFree()).isEqualTo(2);
    assertThat(pool.reset()).as("in use").isFalse();
    owner.append(1);
    pool.release(owner);
    assertThat(pool.reset()).isTrue();
    assertThat(pool.numCached()).isZero();
  }

  @Test
  void equalContentsAreNotMergedAndTheOldestIsFound() {
    KvBlockPool pool = new KvBlockPool(5, 4, true);
    take(pool, 3);
    for (int block = 1; block <= 3; block++) {
      pool.publish(block, hash(9), 0, 0);
    }
    assertThat(pool.find(hash(9), 0, 0)).isEqualTo(1);
    pool.forget(1);
    assertThat(pool.find(hash(9), 0, 0)).isEqualTo(2);
    pool.forget(3);
    assertThat(pool.find(hash(9), 0, 0)).isEqualTo(2);
    pool.forget(2);
    assertThat(pool.find(hash(9), 0, 0)).isEqualTo(-1);
  }

  @Test
  void aBlockGivenBackTwiceIsNoticed() {
    KvBlockPool pool = new KvBlockPool(4, 4, false);
    BlockTable table = take(pool, 1);
    pool.release(table);
    table.append(1);
    assertThatThrownBy(() -> pool.release(table)).hasMessage("block 1 is given back but has no owner");
  }

  @Test
  void auditComparesOwnersWithTables() {
    KvBlockPool pool = new KvBlockPool(4, 4, false);
    take(pool, 2);
    assertThat(pool.audit(new int[] {0, 1, 1, 0})).isTrue();
    assertThat(pool.audit(new int[] {0, 1, 0, 0})).isFalse();
    assertThat(pool.audit(new int[] {0, 1, 1, 1})).isFalse();
  }

  @ParameterizedTest(name = "seed {0}")
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void everyBlockIsFreeOrOwned(long seed) {
    Random random = new Random(seed);
    KvBlockPool pool = new KvBlockPool(2 + random.nextInt(40), 4, random.nextBoolean());
    List<BlockTable> tables = new ArrayList<>();
    int[] entries = new int[pool.numBlocks()];
    long contents = 0;
    for (int i = 0; i < 2000; i++) {
      if (random.nextBoolean() && pool.numFree() > 0) {
        BlockTable table = take(pool, 1 + random.nextInt(pool.numFree()));
        tables.add(table);
        for (int j = 0; j < table.size(); j++) {
          entries[table.block(j)]++;
          if (random.nextBoolean()) {
            pool.publish(table.block(j), hash(contents++ % 10), 0, 0);
          }
        }
        int hit = pool.find(hash(random.nextInt(10)), 0, 0);
        if (hit >= 0 && random.nextBoolean()) {
          pool.touch(hit);
          table.append(hit);
          entries[hit]++;
        }
      } else if (!tables.isEmpty()) {
        BlockTable table = tables.remove(random.nextInt(tables.size()));
        for (int j = 0; j < table.size(); j++) {
          entries[table.block(j)]--;
        }
        pool.release(table);
      }
      assertThat(pool.audit(entries)).as("after operation " + i).isTrue();
    }
  }

  @Test
  void withoutPrefixCachingNoEvictionIsReported() {
    for (boolean caching : new boolean[] {false, true}) {
      KvBlockPool pool = new KvBlockPool(2, 16, caching);
      ResidencySampler residency = new ResidencySampler(2, 1, () -> 0);
      pool.watch(residency);
      for (int i = 0; i < 2; i++) {
        BlockTable table = new BlockTable();
        pool.setNanos(10 + 5 * i);
        pool.allocate(1, table);
        pool.release(table);
      }
      List<Long> lifetimes = new ArrayList<>();
      residency.drainTo((life, idle, first, second, third) -> lifetimes.add(life));
      assertThat(lifetimes).isEqualTo(caching ? List.of(5L) : List.of());
    }
  }
}
