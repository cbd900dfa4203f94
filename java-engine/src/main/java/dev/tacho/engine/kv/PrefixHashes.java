package dev.tacho.engine.kv;

import java.util.Arrays;

/**
 * The hashes of one sequence's full blocks, extended as its tokens grow, so that generated text can be found in the
 * prefix cache too. Engine thread only.
 */
public final class PrefixHashes {
  private final byte[] firstBlockKeys;
  private final byte[] laterBlockKeys;
  private long[] words = {};
  private int size;

  /**
   * @param adapterName LoRA adapter, part of every block's hash; empty for none
   * @param cacheSalt part of the first block's hash, and so of all; empty for none
   */
  public PrefixHashes(String adapterName, String cacheSalt) {
    laterBlockKeys = BlockHasher.extraKeys(adapterName, "");
    firstBlockKeys = cacheSalt.isEmpty() ? laterBlockKeys : BlockHasher.extraKeys(adapterName, cacheSalt);
  }

  /** Makes room for the hashes of so many blocks. */
  void reserve(int numBlocks) {
    if (numBlocks * BlockHasher.WORDS > words.length) {
      words = Arrays.copyOf(words, numBlocks * BlockHasher.WORDS);
    }
  }

  /** Hashes the blocks that are full now. */
  public void extend(BlockHasher hasher, int[] tokens, int length) {
    int full = length / hasher.blockTokens();
    if (full * BlockHasher.WORDS > words.length) {
      reserve(Math.max(full, words.length / BlockHasher.WORDS * 2));
    }
    for (; size < full; size++) {
      hasher.hash(tokens, size, size == 0 ? firstBlockKeys : laterBlockKeys, words);
    }
  }

  /** Blocks hashed. */
  public int size() {
    return size;
  }

  /** A part of the hash of a block; 0 if it is none that has been hashed. */
  int word(int block) {
    return block >= 0 && block < size ? (int) words[block * BlockHasher.WORDS] : 0;
  }

  /** Hash words; block i's begin at {@code i * BlockHasher.WORDS}. */
  long[] words() {
    return words;
  }
}
