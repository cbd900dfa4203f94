package dev.tacho.engine.kv;

import static dev.tacho.engine.kv.BlockRecords.CACHED;
import static dev.tacho.engine.kv.BlockRecords.CHAIN;
import static dev.tacho.engine.kv.BlockRecords.GROUP;
import static dev.tacho.engine.kv.BlockRecords.NEXT_IN_CHAIN;
import static dev.tacho.engine.kv.BlockRecords.PREVIOUS_IN_CHAIN;

import java.util.Arrays;

/**
 * Which block holds which prefix: a hash table from the hash of a full block to the blocks registered under it, oldest
 * first. Blocks with equal contents are not merged, so that block tables stay append-only. Chains run through the
 * blocks' records, so nothing is allocated after construction and a block is removed in O(1). Engine thread only.
 *
 * <p>The chains of {@value #RUN} consecutive blocks of a sequence stand side by side, where the hash of the first of
 * them says: whoever goes through a sequence waits for memory once in a run, not for each block. A hash covers all that
 * comes before it, so equal blocks have equal positions and equal first ones.
 */
final class PrefixCache {
  private static final int NONE = -1;
  // Blocks whose chains stand in one cache line.
  private static final int RUN = 16;
  // The elements of an array begin 16 bytes behind its own beginning; a large one begins with a cache line.
  private static final int ALIGNMENT = 12;

  private final BlockRecords records;
  private final int numBlocks;
  // First block of each chain; the block before a chain's first one is its last one.
  private final int[] chains;
  private final int mask;
  private int size;

  PrefixCache(BlockRecords records, int numBlocks) {
    this.records = records;
    this.numBlocks = numBlocks;
    // Two to four times as many as blocks, so that few chains have two.
    int numChains = Integer.highestOneBit(Math.max(RUN, numBlocks)) * 4;
    mask = numChains - 1;
    chains = new int[ALIGNMENT + numChains];
    Arrays.fill(chains, NONE);
  }

  /** Blocks registered. */
  int size() {
    return size;
  }

  boolean contains(int block) {
    return records.get(block, CACHED) != 0;
  }

  /** Registers a block of a cache group under the hash at {@code words[at]}; it must not be registered yet. */
  void put(int block, long[] words, int at, int group) {
    if (contains(block)) {
      throw new IllegalStateException("block " + block + " is in the prefix cache already");
    }
    records.setHash(block, words, at);
    records.set(block, NEXT_IN_CHAIN, NONE);
    records.set(block, GROUP, group);
    records.set(block, CACHED, 1);
    int chain = chain(words, at, group);
    records.set(block, CHAIN, chain);
    int first = chains[chain];
    if (first == NONE) {
      chains[chain] = block;
      records.set(block, PREVIOUS_IN_CHAIN, block);
    } else {
      int last = records.get(first, PREVIOUS_IN_CHAIN);
      records.set(last, NEXT_IN_CHAIN, block);
      records.set(block, PREVIOUS_IN_CHAIN, last);
      records.set(first, PREVIOUS_IN_CHAIN, block);
    }
    size++;
  }

  /** The oldest block of the group registered under the hash at {@code words[at]}, or -1. */
  int find(long[] words, int at, int group) {
    int block = chains[chain(words, at, group)];
    while (block != NONE && !(records.get(block, GROUP) == group && records.hasHash(block, words, at))) {
      block = records.get(block, NEXT_IN_CHAIN);
    }
    return block;
  }

  /** Reads the chain that the next block to be hashed will be put into, and its first block; gives nothing of use. */
  int fetch(PrefixHashes hashes) {
    int next = hashes.size();
    if (next == runStart(next)) {
      // Its own hash says where its chain is.
      return 0;
    }
    int first = chains[chain(hashes.words(), next * BlockHasher.WORDS, 0)];
    // Without a branch, which would be foretold wrongly too often: the null block stands for none.
    return records.get(Math.max(first, KvBlockPool.NULL_BLOCK), PREVIOUS_IN_CHAIN);
  }

  /** Removes a block if it is there; others under the same hash stay. */
  void remove(int block) {
    if (!contains(block)) {
      return;
    }
    int chain = records.get(block, CHAIN);
    int first = chains[chain];
    int before = records.get(block, PREVIOUS_IN_CHAIN);
    int after = records.get(block, NEXT_IN_CHAIN);
    if (block == first) {
      chains[chain] = after;
    } else {
      records.set(before, NEXT_IN_CHAIN, after);
    }
    if (after != NONE) {
      records.set(after, PREVIOUS_IN_CHAIN, before);
    } else if (block != first) {
      records.set(first, PREVIOUS_IN_CHAIN, before);
    }
    records.set(block, CACHED, 0);
    size--;
  }

  void clear() {
    Arrays.fill(chains, NONE);
    for (int block = 0; block < numBlocks; block++) {
      records.set(block, CACHED, 0);
    }
    size = 0;
  }

  /** The first block of the run in which the block with this index stands. */
  static int runStart(int index) {
    return index & -RUN;
  }

  /** The chain of the hash at {@code words[at]}. */
  private int chain(long[] words, int at, int group) {
    int index = at / BlockHasher.WORDS;
    long first = words[runStart(index) * BlockHasher.WORDS];
    // Where a run begins within its line is as random as which line it is: most sequences are short.
    int line = ((int) first + group) * RUN;
    return ALIGNMENT + ((line | (index + (int) (first >>> Integer.SIZE) & RUN - 1)) & mask);
  }
}
