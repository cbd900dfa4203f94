package dev.tacho.engine.kv;

import java.util.Arrays;

/**
 * Which block holds which prefix: a hash table from the hash of a full block to the blocks registered under it, oldest
 * first. Blocks with equal contents are not merged, so that block tables stay append-only. Chains run through arrays
 * indexed by block, so nothing is allocated after construction and a block is removed in O(1). Engine thread only.
 */
final class PrefixCache {
  private static final int NONE = -1;

  private final long[] hashes;
  private final int[] groups;
  private final boolean[] present;
  private final int[] next;
  private final int[] previous;
  private final int[] heads;
  private final int[] tails;
  private int size;

  PrefixCache(int numBlocks) {
    hashes = new long[Math.multiplyExact(numBlocks, BlockHasher.WORDS)];
    groups = new int[numBlocks];
    present = new boolean[numBlocks];
    next = new int[numBlocks];
    previous = new int[numBlocks];
    int buckets = Integer.highestOneBit(Math.max(8, numBlocks)) << 1;
    heads = new int[buckets];
    tails = new int[buckets];
    Arrays.fill(heads, NONE);
    Arrays.fill(tails, NONE);
  }

  /** Blocks registered. */
  int size() {
    return size;
  }

  boolean contains(int block) {
    return present[block];
  }

  /** Registers a block of a cache group under the hash at {@code words[at]}; it must not be registered yet. */
  void put(int block, long[] words, int at, int group) {
    if (present[block]) {
      throw new IllegalStateException("block " + block + " is in the prefix cache already");
    }
    System.arraycopy(words, at, hashes, block * BlockHasher.WORDS, BlockHasher.WORDS);
    groups[block] = group;
    int bucket = bucket(words[at], group);
    int tail = tails[bucket];
    next[block] = NONE;
    previous[block] = tail;
    if (tail == NONE) {
      heads[bucket] = block;
    } else {
      next[tail] = block;
    }
    tails[bucket] = block;
    present[block] = true;
    size++;
  }

  /** The oldest block of the group registered under the hash at {@code words[at]}, or -1. */
  int find(long[] words, int at, int group) {
    for (int block = heads[bucket(words[at], group)]; block != NONE; block = next[block]) {
      int own = block * BlockHasher.WORDS;
      if (groups[block] == group
          && Arrays.equals(hashes, own, own + BlockHasher.WORDS, words, at, at + BlockHasher.WORDS)) {
        return block;
      }
    }
    return NONE;
  }

  /** Removes a block if it is there; others under the same hash stay. */
  void remove(int block) {
    if (!present[block]) {
      return;
    }
    int bucket = bucket(hashes[block * BlockHasher.WORDS], groups[block]);
    int before = previous[block];
    int after = next[block];
    if (before == NONE) {
      heads[bucket] = after;
    } else {
      next[before] = after;
    }
    if (after == NONE) {
      tails[bucket] = before;
    } else {
      previous[after] = before;
    }
    present[block] = false;
    size--;
  }

  void clear() {
    Arrays.fill(heads, NONE);
    Arrays.fill(tails, NONE);
    Arrays.fill(present, false);
    size = 0;
  }

  private int bucket(long word, int group) {
    return ((int) word + group) & (heads.length - 1);
  }
}
