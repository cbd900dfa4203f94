package dev.tacho.engine.kv;

import java.util.Arrays;

/**
 * The KV blocks of one sequence, in order of position: with blocks of 16 tokens entry i holds positions 16 i to
 * 16 i + 15. Entries that a sliding window has left behind are the null block. Engine thread only.
 */
public final class BlockTable {
  private int[] blocks = {};
  private int size;
  private int published;
  private int publishedEnd;

  /** Blocks in the table. */
  public int size() {
    return size;
  }

  /** Number of block {@code i} of the sequence. */
  public int block(int i) {
    if (i >= size) {
      throw new IndexOutOfBoundsException("block " + i + " of " + size);
    }
    return blocks[i];
  }

  /** The last block, the null block if there is none. */
  int newest() {
    return size == 0 ? KvBlockPool.NULL_BLOCK : blocks[size - 1];
  }

  /** Blocks for which there is room. */
  int capacity() {
    return blocks.length;
  }

  /** Appends a block. */
  public void append(int block) {
    if (size == blocks.length) {
      blocks = Arrays.copyOf(blocks, Math.max(4, size * 2));
    }
    blocks[size++] = block;
  }

  /** Makes room for blocks. */
  void reserve(int numBlocks) {
    if (numBlocks > blocks.length) {
      blocks = Arrays.copyOf(blocks, numBlocks);
    }
  }

  /** Forgets all blocks; they must have been given back. */
  public void clear() {
    size = 0;
    published = 0;
    publishedEnd = 0;
  }

  /** Replaces a block, which must have been given back, by the null block. */
  void drop(int i) {
    blocks[i] = KvBlockPool.NULL_BLOCK;
  }

  /** Leading blocks that have been considered for the prefix cache. */
  int published() {
    return published;
  }

  /** Blocks up to the last one that is in the prefix cache or was found there. */
  int publishedEnd() {
    return publishedEnd;
  }

  /** Block {@code i}, the first not yet considered, is in the prefix cache or not. */
  void considered(int i, boolean inCache) {
    published = i + 1;
    if (inCache) {
      publishedEnd = i + 1;
    }
  }

  /** Blocks from this one on are not in the prefix cache any more. */
  void unpublish(int firstBlock) {
    published = Math.min(published, firstBlock);
    publishedEnd = Math.min(publishedEnd, firstBlock);
  }
}
