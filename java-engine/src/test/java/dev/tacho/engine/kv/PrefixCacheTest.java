package dev.tacho.engine.kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashSet;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Blocks under few hashes come and go in any order, beside a list of them in the order of their coming. */
class PrefixCacheTest {
  private static final int BLOCKS = 24;
  private static final int GROUPS = 2;

  // Hashes that differ in one bit of one word, of blocks so far from each other. If they begin runs of blocks, all but
  // those of the first word share a chain; if they follow each other, they have neighbouring chains.
  private static long[] hashes(int distance) {
    long[] words = new long[5 * distance * BlockHasher.WORDS];
    for (int i = 0; i < 5; i++) {
      int at = i * distance * BlockHasher.WORDS;
      words[at] = 0xFFFF_FFFF_0000_0007L;
      if (i > 0) {
        words[at + i - 1] ^= i % 2 == 0 ? 1 : Long.MIN_VALUE;
      }
    }
    return words;
  }

  /** A block as the model knows it. */
  private record Entry(int block, int at, int group) {}

  private static int oldest(Set<Entry> model, int at, int group) {
    return model.stream().filter(e -> e.at == at && e.group == group).mapToInt(Entry::block).findFirst().orElse(-1);
  }

  @ParameterizedTest(name = "blocks {1} apart, seed {0}")
  @CsvSource({"1, 1", "2, 1", "3, 1", "1, 16", "2, 16", "3, 16"})
  void findsTheOldestBlockOfAHashWhateverWasRemoved(long seed, int distance) {
    Random random = new Random(seed);
    long[] words = hashes(distance);
    PrefixCache cache = new PrefixCache(new BlockRecords(BLOCKS), BLOCKS);
    Set<Entry> model = new LinkedHashSet<>();
    for (int i = 0; i < 20_000; i++) {
      int block = random.nextInt(BLOCKS);
      if (cache.contains(block)) {
        cache.remove(block);
        assertThat(model.removeIf(e -> e.block == block)).isTrue();
      } else {
        Entry entry = new Entry(block, random.nextInt(5) * distance * BlockHasher.WORDS, random.nextInt(GROUPS));
        cache.put(block, words, entry.at, entry.group);
        model.add(entry);
      }
      if (random.nextInt(2_000) == 0) {
        cache.clear();
        model.clear();
      }
      assertThat(cache.size()).isEqualTo(model.size());
      int at = random.nextInt(5) * distance * BlockHasher.WORDS;
      int group = random.nextInt(GROUPS);
      assertThat(cache.find(words, at, group)).isEqualTo(oldest(model, at, group));
    }
  }
}
