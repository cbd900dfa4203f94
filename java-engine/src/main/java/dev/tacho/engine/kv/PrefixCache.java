package dev.tacho.engine.kv;

import static dev.tacho.engine.kv.BlockRecords.CACHED;
import static dev.tacho.engine.kv.BlockRecords.GROUP;
import static dev.tacho.engine.kv.BlockRecords.NEXT_IN_CHAIN;
import static dev.tacho.engine.kv.BlockRecords.PREVIOUS_IN_CHAIN;

import java.util.Arrays;

/**
 * Which block holds which prefix: a hash table from the hash of a full block to the blocks registered under it, oldest
 * first. Blocks with equal contents are not merged, so that block tables stay append-only. Chains run through the
 * blocks' records, so nothing is allocated after construction and a block is removed in O(1). Engine thread only.
 */
final class PrefixCache {
  private static final int NONE = -1;

  private final BlockRecords records;
  private final int numBlocks;
  // First block of each chain; the block before a chain's first one is its last one.
  private final int[] chains;
  private int size;

  PrefixCache(BlockRecords records, int numBlocks) {
    this.records = records;
    this.numBlocks = numBlocks;
    chains = new int[Integer.highestOneBit(Math.max(8, Math.min(numBlocks, 1 << 29))) << 1];
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
    int chain = chain(words[at], group);
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
    int block = chains[chain(words[at], group)];
    while (block != NONE && !(records.get(block, GROUP) == group && records.hasHash(block, words, at))) {
      block = records.get(block, NEXT_IN_CHAIN);
    }
    return block;
  }

  /** Removes a block if it is there; others under the same hash stay. */
  void remove(int block) {
    if (!contains(block)) {
      return;
    }
    int chain = chain(records.firstWord(block), records.get(block, GROUP));
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

  /** The chain of a hash. */
  private int chain(long word, int group) {
    return ((int) word + group) & (chains.length - 1);
  }
}
