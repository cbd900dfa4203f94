package dev.tacho.engine.kv;

import java.util.Arrays;

/** The KV blocks of one sequence, in order of position: entry i holds tokens 16 i to 16 i + 15. Engine thread only. */
public final class BlockTable {
  private int[] blocks = new int[4];
  private int size;

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

  /** Appends a block. */
  public void append(int block) {
    if (size == blocks.length) {
      blocks = Arrays.copyOf(blocks, size * 2);
    }
    blocks[size++] = block;
  }

  /** Forgets all blocks; they must have been given back. */
  public void clear() {
    size = 0;
  }
}
