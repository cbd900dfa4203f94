package dev.tacho.engine.kv;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Hashes of blocks: what they depend on, that they differ, what they cost. */
class BlockHasherTest {
  private static final int BLOCK = 16;

  private static List<Long> hashes(BlockHasher hasher, int[] tokens, String adapter, String salt) {
    PrefixHashes hashes = new PrefixHashes(adapter, salt);
    hashes.extend(hasher, tokens, tokens.length);
    return Arrays.stream(hashes.words(), 0, hashes.size() * BlockHasher.WORDS).boxed().toList();
  }

  private static int[] tokens(int count) {
    int[] tokens = new int[count];
    Arrays.setAll(tokens, i -> i * 7 % 5);
    return tokens;
  }

  @ParameterizedTest
  @EnumSource
  void everythingBeforeTheBlocksEndDecides(PrefixHashAlgorithm algorithm) {
    BlockHasher hasher = algorithm.newHasher(5);
    int[] tokens = tokens(17);
    List<Long> words = hashes(hasher, tokens, "", "");
    assertThat(words).hasSize(3 * BlockHasher.WORDS);
    assertThat(hashes(hasher, tokens(15), "", "")).isEqualTo(words);
    for (int i = 0; i < 15; i++) {
      int[] other = tokens.clone();
      other[i]++;
      List<Long> changed = hashes(hasher, other, "", "");
      for (int block = 0; block < 3; block++) {
        List<Long> ours = changed.subList(block * BlockHasher.WORDS, (block + 1) * BlockHasher.WORDS);
        boolean same = ours.equals(words.subList(block * BlockHasher.WORDS, (block + 1) * BlockHasher.WORDS));
        assertThat(same).as("block %d, token %d changed", block, i).isEqualTo(i >= (block + 1) * 5);
      }
    }
    Set<List<Long>> firstBlocks = new HashSet<>();
    for (String adapter : List.of("", "a", "b", "ab")) {
      for (String salt : List.of("", "a", "b", "ab")) {
        firstBlocks.add(hashes(hasher, tokens(5), adapter, salt));
      }
    }
    assertThat(firstBlocks).hasSize(16);
  }

  @Test
  void sha256IsThatOfParentTokensAndKeys() throws NoSuchAlgorithmException {
    int[] tokens = {1, -2, 1 << 30};
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    ByteBuffer message = ByteBuffer.allocate(100).order(ByteOrder.LITTLE_ENDIAN);
    message.put(digest.digest("tacho: no parent".getBytes(StandardCharsets.US_ASCII)));
    message.putInt(1).putInt(-2).putInt(1 << 30).put((byte) 2).putInt(4).put("salt".getBytes(StandardCharsets.UTF_8));
    byte[] expected = digest.digest(Arrays.copyOf(message.array(), message.position()));
    List<Long> words = new ArrayList<>();
    ByteBuffer hash = ByteBuffer.wrap(expected).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < BlockHasher.WORDS; i++) {
      words.add(hash.getLong());
    }
    assertThat(hashes(PrefixHashAlgorithm.SHA256.newHasher(3), tokens, "", "salt")).isEqualTo(words);
  }

  @Test
  void fastHashSpreadsSimilarBlocksOverAllBits() {
    BlockHasher hasher = PrefixHashAlgorithm.XXHASH.newHasher(BLOCK);
    int blocks = 200_000;
    // Blocks that differ in a counter at one place alone, and chains that begin with them.
    long[] low = new long[blocks];
    long[] high = new long[blocks];
    int[] ones = new int[128];
    for (int i = 0; i < blocks; i++) {
      int[] tokens = new int[BLOCK];
      tokens[i % BLOCK] = i / BLOCK;
      tokens[(i + 5) % BLOCK] ^= 1;
      long[] words = new long[BlockHasher.WORDS];
      hasher.hash(tokens, 0, new byte[0], words);
      low[i] = words[0];
      high[i] = words[1];
      for (int bit = 0; bit < 64; bit++) {
        ones[bit] += (int) (words[0] >>> bit & 1);
        ones[64 + bit] += (int) (words[1] >>> bit & 1);
      }
    }
    assertThat(Arrays.stream(low).distinct().count()).isGreaterThan(blocks - BLOCK);
    assertThat(Arrays.stream(high).distinct().count()).isGreaterThan(blocks - BLOCK);
    for (int bit = 0; bit < 128; bit++) {
      // Six standard deviations of a fair coin.
      assertThat(Math.abs(ones[bit] - blocks / 2.0)).as("bit " + bit).isLessThan(3 * Math.sqrt(blocks));
    }
    int buckets = 1 << 16;
    int[] sizes = new int[buckets];
    for (long word : low) {
      sizes[(int) word & (buckets - 1)]++;
    }
    assertThat(Arrays.stream(sizes).max().orElseThrow()).as("longest chain of the table").isLessThan(25);
  }

  @ParameterizedTest
  @EnumSource
  void eachInputBitChangesHalfOfTheBits(PrefixHashAlgorithm algorithm) {
    BlockHasher hasher = algorithm.newHasher(BLOCK);
    Random random = new Random(5);
    int[] tokens = random.ints(BLOCK, 0, 150_000).toArray();
    long[] words = new long[BlockHasher.WORDS];
    hasher.hash(tokens, 0, new byte[0], words);
    for (int bit = 0; bit < BLOCK * 18; bit++) {
      int[] other = tokens.clone();
      other[bit / 18] ^= 1 << (bit % 18);
      long[] changed = new long[BlockHasher.WORDS];
      hasher.hash(other, 0, new byte[0], changed);
      int flipped = Long.bitCount(changed[0] ^ words[0]) + Long.bitCount(changed[1] ^ words[1]);
      assertThat(flipped).as("bit " + bit).isBetween(32, 96);
    }
  }

  @ParameterizedTest
  @EnumSource
  void allocatesNothing(PrefixHashAlgorithm algorithm) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    BlockHasher hasher = algorithm.newHasher(BLOCK);
    int[] tokens = tokens(2048 * BLOCK);
    long[] words = new long[2048 * BlockHasher.WORDS];
    byte[] keys = BlockHasher.extraKeys("adapter", "");
    long least = Long.MAX_VALUE;
    for (int round = 0; round < 60 && least > 0; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 2048; i++) {
        hasher.hash(tokens, i, keys, words);
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    assertThat(least).isZero();
  }
}
