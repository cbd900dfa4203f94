package dev.tacho.engine.kv;

/**
 * What is known of the blocks of a pool, 64 bytes of one array a block, so that whoever handles a block waits for one
 * cache line:
 *
 * <pre>
 *   int  0     next in the free list           3  next in its chain of the prefix cache
 *        1     previous in the free list       4  previous there
 *        2     owners                          5  cache group of a cached block
 *                                              6  1 if it is cached
 *                                              7  its chain there
 *        8-15  its hash, low half of each word first
 * </pre>
 *
 * <p>The pool writes the first three, the prefix cache the others. Engine thread only.
 */
final class BlockRecords {
  static final int NEXT_FREE = 0;
  static final int PREVIOUS_FREE = 1;
  static final int OWNERS = 2;
  static final int NEXT_IN_CHAIN = 3;
  static final int PREVIOUS_IN_CHAIN = 4;
  static final int GROUP = 5;
  static final int CACHED = 6;
  static final int CHAIN = 7;
  private static final int HASH = 8;

  private static final int STRIDE = HASH + 2 * BlockHasher.WORDS;
  // The elements of an array begin 16 bytes behind its own beginning; a large one begins with a cache line.
  private static final int ALIGNMENT = 12;

  /** So many fit into an array. */
  static final int MAX_BLOCKS = (Integer.MAX_VALUE - 8 - ALIGNMENT) / STRIDE;

  private final int[] ints;

  /**
   * @param numBlocks at most {@link #MAX_BLOCKS}
   */
  BlockRecords(int numBlocks) {
    ints = new int[numBlocks * STRIDE + ALIGNMENT];
  }

  int get(int block, int field) {
    return ints[block * STRIDE + ALIGNMENT + field];
  }

  void set(int block, int field, int value) {
    ints[block * STRIDE + ALIGNMENT + field] = value;
  }

  /** Sets a block's hash to the one at {@code words[from]}. */
  void setHash(int block, long[] words, int from) {
    int at = block * STRIDE + ALIGNMENT + HASH;
    for (int i = 0; i < BlockHasher.WORDS; i++) {
      ints[at + 2 * i] = (int) words[from + i];
      ints[at + 2 * i + 1] = (int) (words[from + i] >>> Integer.SIZE);
    }
  }

  /** True if a block's hash is the one at {@code words[from]}. */
  boolean hasHash(int block, long[] words, int from) {
    int at = block * STRIDE + ALIGNMENT + HASH;
    int difference = 0;
    for (int i = 0; i < BlockHasher.WORDS; i++) {
      difference |= ints[at + 2 * i] ^ (int) words[from + i];
      difference |= ints[at + 2 * i + 1] ^ (int) (words[from + i] >>> Integer.SIZE);
    }
    return difference == 0;
  }
}
