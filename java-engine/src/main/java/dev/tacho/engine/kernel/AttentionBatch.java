package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * The sequences of a step as attention sees them, and its planned work items. Written by the engine thread before a
 * step is launched, read by the workers; sized once for the largest step, so planning allocates nothing.
 *
 * <pre>
 *   qStarts     int32 [numSequences + 1]                 rows of q
 *   contextLens int32 [numSequences]                     this step's tokens included
 *   blockTable  int32 [numSequences][blockTableStride]   block numbers
 *   items       int32 [numItems][4]                      sequence, kv head, first query, end of queries
 * </pre>
 */
public final class AttentionBatch {
  /** Queries of one work item at most. */
  public static final int ITEM_QUERIES = 32;

  /** Ints of a work item. */
  public static final int ITEM_INTS = 4;

  private final int maxSequences;
  private final int maxTokens;
  private final int blockTableStride;
  private final int numKvHeads;
  private final MemorySegment qStarts;
  private final MemorySegment contextLens;
  private final MemorySegment blockTable;
  private final MemorySegment items;
  private int numSequences;
  private int numItems;

  /**
   * @param arena owns the memory
   * @param maxSequences sequences of a step at most
   * @param maxTokens tokens of a step at most
   * @param maxBlocks blocks of a sequence at most
   * @param numKvHeads kv heads of the layers
   */
  public AttentionBatch(Arena arena, int maxSequences, int maxTokens, int maxBlocks, int numKvHeads) {
    this.maxSequences = maxSequences;
    this.maxTokens = maxTokens;
    this.blockTableStride = maxBlocks;
    this.numKvHeads = numKvHeads;
    qStarts = arena.allocate(JAVA_INT, maxSequences + 1L);
    contextLens = arena.allocate(JAVA_INT, maxSequences);
    blockTable = arena.allocate(JAVA_INT, Math.multiplyExact((long) maxSequences, maxBlocks));
    long maxItems = Math.multiplyExact(maxSequences + (long) maxTokens / ITEM_QUERIES, numKvHeads);
    items = arena.allocate(JAVA_INT, Math.multiplyExact(maxItems, ITEM_INTS));
  }

  /** Empties the batch. */
  public void clear() {
    numSequences = 0;
    numItems = 0;
    qStarts.setAtIndex(JAVA_INT, 0, 0);
  }

  /**
   * Adds a sequence; its block table is written through {@link #setBlock} afterwards.
   *
   * @param queries tokens of this step, at least 1
   * @param contextLen tokens in the cache after this step, at least {@code queries}
   * @return the sequence's index
   */
  public int addSequence(int queries, int contextLen) {
    int s = numSequences;
    int start = qStarts.getAtIndex(JAVA_INT, s);
    if (s == maxSequences || queries < 1 || queries > maxTokens - start) {
      throw new IllegalArgumentException(
          "sequence " + s + " of " + maxSequences + ": " + queries + " queries after " + start + " of " + maxTokens);
    }
    int blocks = (contextLen + KvCacheLayer.BLOCK_TOKENS - 1) / KvCacheLayer.BLOCK_TOKENS;
    if (contextLen < queries || blocks > blockTableStride) {
      throw new IllegalArgumentException(
          "context of " + contextLen + " tokens for " + queries + " queries and " + blockTableStride + " blocks");
    }
    qStarts.setAtIndex(JAVA_INT, s + 1L, start + queries);
    contextLens.setAtIndex(JAVA_INT, s, contextLen);
    numSequences = s + 1;
    for (int head = 0; head < numKvHeads; head++) {
      for (int q = 0; q < queries; q += ITEM_QUERIES) {
        long at = (long) numItems * ITEM_INTS;
        items.setAtIndex(JAVA_INT, at, s);
        items.setAtIndex(JAVA_INT, at + 1, head);
        items.setAtIndex(JAVA_INT, at + 2, q);
        items.setAtIndex(JAVA_INT, at + 3, Math.min(q + ITEM_QUERIES, queries));
        numItems++;
      }
    }
    return s;
  }

  /** Sets entry {@code index} of a sequence's block table. */
  public void setBlock(int sequence, int index, int block) {
    if (index < 0 || index >= blockTableStride) {
      throw new IllegalArgumentException("block " + index + " of a table of " + blockTableStride);
    }
    blockTable.setAtIndex(JAVA_INT, (long) sequence * blockTableStride + index, block);
  }

  /** Sequences in the batch. */
  public int numSequences() {
    return numSequences;
  }

  /** Work items in the batch. */
  public int numItems() {
    return numItems;
  }

  /** Tokens in the batch. */
  public int numTokens() {
    return qStarts.getAtIndex(JAVA_INT, numSequences);
  }

  /** The first row of q of a sequence. */
  public int queryStart(int sequence) {
    return qStarts.getAtIndex(JAVA_INT, sequence);
  }

  /** Tokens of a sequence in this step. */
  public int queryCount(int sequence) {
    return queryStart(sequence + 1) - queryStart(sequence);
  }

  /** Tokens of a sequence in the cache, this step's included. */
  public int contextLen(int sequence) {
    return contextLens.getAtIndex(JAVA_INT, sequence);
  }

  /** Entry {@code index} of a sequence's block table. */
  public int block(int sequence, int index) {
    return blockTable.getAtIndex(JAVA_INT, (long) sequence * blockTableStride + index);
  }

  /** The sequence of a work item. */
  public int itemSequence(int item) {
    return items.getAtIndex(JAVA_INT, (long) item * ITEM_INTS);
  }

  /** The kv head of a work item. */
  public int itemKvHead(int item) {
    return items.getAtIndex(JAVA_INT, (long) item * ITEM_INTS + 1);
  }

  /** The first query of a work item, counted from the sequence's first one in this step. */
  public int itemQueryBegin(int item) {
    return items.getAtIndex(JAVA_INT, (long) item * ITEM_INTS + 2);
  }

  /** The end of a work item's queries. */
  public int itemQueryEnd(int item) {
    return items.getAtIndex(JAVA_INT, (long) item * ITEM_INTS + 3);
  }

  /** Ints between the tables of two sequences. */
  public int blockTableStride() {
    return blockTableStride;
  }

  /** See the drawing. */
  public MemorySegment qStarts() {
    return qStarts;
  }

  /** See the drawing. */
  public MemorySegment contextLens() {
    return contextLens;
  }

  /** See the drawing. */
  public MemorySegment blockTable() {
    return blockTable;
  }

  /** See the drawing. */
  public MemorySegment items() {
    return items;
  }
}
