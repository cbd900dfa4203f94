package dev.tacho.engine.kv;

import java.util.Arrays;

/**
 * Which block holds which prefix: a hash table from the hash of a full block to the blocks registered under it, oldest
 * first. Blocks with equal contents are not merged, so that block tables stay append-only. Chains run through arrays
 * indexed by block, so nothing is allocated after construction and a block is removed in O(1). Engine thread only.
 */
final class PrefixCache {
  private static final int NONE = -1;

  // What is known of a block stands together, so that it comes with one cache line: block b's entry begins at
  // b * LINKS. Its hash is the WORDS words at b * WORDS of another array.
  private static final int LINKS = 4;
  private static final int NEXT = 0;
  private static final int PREVIOUS = 1;
  private static final int GROUP = 2;
  private static final int PRESENT = 3;

  private final long[] hashes;
  private final int[] links;
  // First and last block of chain c: at 2 * c and behind.
  private final int[] chains;
  private final int chainMask;
  private int size;

  PrefixCache(int numBlocks) {
    hashes = new long[Math.multiplyExact(numBlocks, BlockHasher.WORDS)];
    links = new int[Math.multiplyExact(numBlocks, LINKS)];
    int numChains = Integer.highestOneBit(Math.max(8, numBlocks)) << 1;
    chainMask = numChains - 1;
    chains = new int[Math.multiplyExact(numChains, 2)];
    Arrays.fill(chains, NONE);
  }

  /** Blocks registered. */
  int size() {
    return size;
  }

  boolean contains(int block) {
    return links[block * LINKS + PRESENT] != 0;
  }

  /** Registers a block of a cache group under the hash at {@code words[at]}; it must not be registered yet. */
  void put(int block, long[] words, int at, int group) {
    if (contains(block)) {
      throw new IllegalStateException("block " + block + " is in the prefix cache already");
    }
    System.arraycopy(words, at, hashes, block * BlockHasher.WORDS, BlockHasher.WORDS);
    int chain = chain(words[at], group);
    int tail = chains[chain + 1];
    chains[chain + 1] = block;
    if (tail == NONE) {
      chains[chain] = block;
    } else {
      links[tail * LINKS + NEXT] = block;
    }
    int own = block * LINKS;
    links[own + NEXT] = NONE;
    links[own + PREVIOUS] = tail;
    links[own + GROUP] = group;
    links[own + PRESENT] = 1;
    size++;
  }

  /** The oldest block of the group registered under the hash at {@code words[at]}, or -1. */
  int find(long[] words, int at, int group) {
    int block = chains[chain(words[at], group)];
    while (block != NONE && !(links[block * LINKS + GROUP] == group && hasHash(block, words, at))) {
      block = links[block * LINKS + NEXT];
    }
    return block;
  }

  private boolean hasHash(int block, long[] words, int at) {
    int own = block * BlockHasher.WORDS;
    long difference = 0;
    for (int i = 0; i < BlockHasher.WORDS; i++) {
      difference |= hashes[own + i] ^ words[at + i];
    }
    return difference == 0;
  }

  /** Removes a block if it is there; others under the same hash stay. */
  void remove(int block) {
    if (!contains(block)) {
      return;
    }
    int own = block * LINKS;
    int chain = chain(hashes[block * BlockHasher.WORDS], links[own + GROUP]);
    int before = links[own + PREVIOUS];
    int after = links[own + NEXT];
    if (before == NONE) {
      chains[chain] = after;
    } else {
      links[before * LINKS + NEXT] = after;
    }
    if (after == NONE) {
      chains[chain + 1] = before;
    } else {
      links[after * LINKS + PREVIOUS] = before;
    }
    links[own + PRESENT] = 0;
    size--;
  }

  void clear() {
    Arrays.fill(chains, NONE);
    Arrays.fill(links, 0);
    size = 0;
  }

  /** Where the chain of a hash begins. */
  private int chain(long word, int group) {
    return (((int) word + group) & chainMask) * 2;
  }
}
