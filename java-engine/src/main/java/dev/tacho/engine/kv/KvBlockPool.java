package dev.tacho.engine.kv;

import static dev.tacho.engine.kv.BlockRecords.NEXT_FREE;
import static dev.tacho.engine.kv.BlockRecords.OWNERS;
import static dev.tacho.engine.kv.BlockRecords.PREVIOUS_FREE;

import dev.tacho.metrics.stats.ResidencySampler;
import org.jspecify.annotations.Nullable;

/**
 * Hands out KV blocks and takes them back: reference counts, the free list and, if it is on, the prefix cache. Block 0
 * is the null block, never handed out nor freed: padding and a safe target. Every operation is O(1) a block and
 * allocates nothing.
 *
 * <p>A free block may still be in the prefix cache; it is found there until it is handed out again. So the free list is
 * in order of reuse: blocks without contents worth keeping in front, cached ones behind, least recently freed first.
 *
 * <p>Owned by the engine thread. When it is empty, {@link #numFree()} is 0 and {@link #allocate} throws: ask first.
 */
public final class KvBlockPool {
  /** The block that belongs to nobody. */
  public static final int NULL_BLOCK = 0;

  private final int numBlocks;
  private final int blockTokens;
  // Block 0, which is never free, serves as the head and tail of the free list; -1 marks a block outside it.
  private final BlockRecords records;
  private final @Nullable PrefixCache cache;
  private @Nullable ResidencySampler residency;
  private long nanos;
  private int numFree;

  /**
   * @param numBlocks blocks, the null block included, at least 2 and at most 2^27 - 2
   * @param blockTokens tokens of a block
   * @param prefixCaching freed blocks can be found by their contents
   */
  public KvBlockPool(int numBlocks, int blockTokens, boolean prefixCaching) {
    if (numBlocks < 2 || blockTokens < 1) {
      throw new IllegalArgumentException(
          "KV pool of " + numBlocks + " blocks of " + blockTokens + " tokens, at least 2 blocks of 1 are needed");
    }
    if (numBlocks > BlockRecords.MAX_BLOCKS) {
      throw new IllegalArgumentException(
          "KV pool of " + numBlocks + " blocks, at most " + BlockRecords.MAX_BLOCKS + " can be kept account of");
    }
    this.numBlocks = numBlocks;
    this.blockTokens = blockTokens;
    records = new BlockRecords(numBlocks);
    records.set(NULL_BLOCK, OWNERS, 1);
    for (int block = 0; block < numBlocks; block++) {
      link(block, (block + 1) % numBlocks);
    }
    numFree = numBlocks - 1;
    cache = prefixCaching ? new PrefixCache(records, numBlocks) : null;
  }

  /** Has what blocks go through watched from now on. */
  public void watch(ResidencySampler watcher) {
    residency = watcher;
  }

  /** Sets the time of the allocations that follow. */
  public void setNanos(long now) {
    nanos = now;
  }

  /** Blocks, the null block included. */
  public int numBlocks() {
    return numBlocks;
  }

  /** Tokens of a block. */
  public int blockTokens() {
    return blockTokens;
  }

  /** True if freed blocks can be found by their contents. */
  public boolean prefixCaching() {
    return cache != null;
  }

  /** Blocks that nobody owns, cached ones included. */
  public int numFree() {
    return numFree;
  }

  /** Share of the usable blocks that somebody owns, in [0, 1]. */
  public double usage() {
    return 1.0 - (double) numFree / (numBlocks - 1);
  }

  /** Owners of a block. */
  public int references(int block) {
    return records.get(block, OWNERS);
  }

  /** True if the block is in the prefix cache, owned or free. */
  public boolean isCached(int block) {
    return cache != null && cache.contains(block);
  }

  /** Blocks in the prefix cache, owned or free. */
  public int numCached() {
    return cache == null ? 0 : cache.size();
  }

  /** Appends {@code count} blocks from the front of the free list to a table; what they cached is forgotten. */
  public void allocate(int count, BlockTable table) {
    if (count > numFree) {
      throw new IllegalStateException(count + " blocks asked for, " + numFree + " are free");
    }
    for (int i = 0; i < count; i++) {
      int block = next(NULL_BLOCK);
      unlink(block);
      if (cache != null) {
        cache.remove(block);
      }
      if (residency != null && cache != null) {
        residency.evicted(block, nanos);
        residency.allocated(block, nanos);
      }
      records.set(block, OWNERS, 1);
      table.append(block);
    }
  }

  /** Adds an owner to a block found in the prefix cache. */
  public void touch(int block) {
    int owners = references(block);
    records.set(block, OWNERS, owners + 1);
    if (owners == 0) {
      unlink(block);
    }
    if (residency != null) {
      residency.used(block, nanos);
    }
  }

  /**
   * Takes away one owner from each block of a table, last block first, and empties the table. Blocks that nobody owns
   * now go in front of the free list as a group in that order, or to its tail if they are cached.
   */
  public void release(BlockTable table) {
    int group = NULL_BLOCK;
    for (int i = table.size() - 1; i >= 0; i--) {
      group = release(table.block(i), group);
    }
    table.clear();
  }

  /**
   * Takes away one owner from each of the first {@code count} blocks of a table that are still there, last one first,
   * and replaces them by the null block.
   */
  void releaseFirst(BlockTable table, int count) {
    int group = NULL_BLOCK;
    for (int i = count - 1; i >= 0 && table.block(i) != NULL_BLOCK; i--) {
      group = release(table.block(i), group);
      table.drop(i);
    }
  }

  /**
   * Takes away one owner from a block.
   *
   * @param group last block of the group in front of the free list, the null block if it is empty
   * @return the same afterwards
   */
  private int release(int block, int group) {
    if (block == NULL_BLOCK) {
      return group;
    }
    int owners = references(block) - 1;
    if (owners < 0) {
      throw new IllegalStateException("block " + block + " is given back but has no owner");
    }
    records.set(block, OWNERS, owners);
    if (owners > 0) {
      return group;
    }
    if (isCached(block)) {
      linkAfter(previous(NULL_BLOCK), block);
      return group;
    }
    linkAfter(group, block);
    return block;
  }

  /**
   * Forgets the contents of all cached blocks if every usable block is free.
   *
   * @return false if one is in use; nothing is changed then
   */
  public boolean reset() {
    if (numFree != numBlocks - 1) {
      return false;
    }
    forgetAll();
    return true;
  }

  /** Forgets the contents of all cached blocks, used ones too; owners and free list stay. */
  public void forgetAll() {
    if (cache != null) {
      cache.clear();
    }
    if (residency != null) {
      residency.reset();
    }
  }

  /** Registers a full block of a cache group under its hash at {@code words[at]}. */
  void publish(int block, long[] words, int at, int group) {
    if (cache != null) {
      cache.put(block, words, at, group);
    }
  }

  /** Takes a block out of the prefix cache. */
  void forget(int block) {
    if (cache != null) {
      cache.remove(block);
    }
  }

  /** The oldest block of the group with the hash at {@code words[at]}, or -1. */
  int find(long[] words, int at, int group) {
    return cache == null ? -1 : cache.find(words, at, group);
  }

  /**
   * Reads what publishing a block, the first one of a sequence that is not hashed, will look at; see {@link
   * BlockAllocator#fetch}.
   */
  int fetch(PrefixHashes hashes, int block) {
    return references(block) + (cache == null ? 0 : cache.fetch(hashes));
  }

  /** Copies the free list, next to be handed out first. */
  public int[] freeList() {
    int[] list = new int[numFree];
    int block = next(NULL_BLOCK);
    for (int i = 0; i < numFree; i++) {
      list[i] = block;
      block = next(block);
    }
    return list;
  }

  /**
   * Compares the pool with what the tables of all sequences hold.
   *
   * @param tableEntries for each block the number of table entries that name it
   * @return true if references equal entries and exactly the blocks without one are in the free list
   */
  public boolean audit(int[] tableEntries) {
    int free = 0;
    for (int block = 1; block < numBlocks; block++) {
      if (references(block) != tableEntries[block] || (references(block) == 0) != (next(block) >= 0)) {
        return false;
      }
      free += references(block) == 0 ? 1 : 0;
    }
    int linked = 0;
    for (int block = next(NULL_BLOCK); block != NULL_BLOCK && linked <= free; block = next(block)) {
      if (previous(next(block)) != block) {
        return false;
      }
      linked++;
    }
    return free == numFree && linked == free && tableEntries.length == numBlocks;
  }

  private int next(int block) {
    return records.get(block, NEXT_FREE);
  }

  private int previous(int block) {
    return records.get(block, PREVIOUS_FREE);
  }

  /** Makes one the neighbour of another in the free list. */
  private void link(int block, int after) {
    records.set(block, NEXT_FREE, after);
    records.set(after, PREVIOUS_FREE, block);
  }

  private void unlink(int block) {
    link(previous(block), next(block));
    records.set(block, NEXT_FREE, -1);
    records.set(block, PREVIOUS_FREE, -1);
    numFree--;
  }

  private void linkAfter(int before, int block) {
    int after = next(before);
    link(before, block);
    link(block, after);
    numFree++;
  }
}
