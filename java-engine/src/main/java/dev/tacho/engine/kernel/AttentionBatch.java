package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/**
 * The sequences of a step as attention sees them, and its planned work items. The engine thread clears it, adds the
 * sequences and plans before a step is launched; the workers read. Sized once for the largest step, so nothing of this
 * allocates.
 *
 * <p>A tile is up to {@link #TILE_QUERIES} queries of a sequence with the query heads of one kv head. Its keys are cut
 * into splits of {@link #SPLIT_KEYS}, each of which is gathered by itself and merged in ascending order, so that the
 * bits do not depend on the plan. Where the kv heads can be shared evenly among the workers, each gets all tiles of its
 * own ({@link #sharesHeads}), and a tile is one item. Elsewhere a tile that would keep one worker busy for much longer
 * than the others is several, which share its splits: then what each split has given waits in {@code partials}, and the
 * item that comes last, by the tile's ticket, merges.
 *
 * <pre>
 *   qStarts     int32 [numSequences + 1]                 rows of q
 *   contextLens int32 [numSequences]                     this step's tokens included
 *   blockTable  int32 [numSequences][blockTableStride]   block numbers
 *   items       int32 [numItems][8]                      sequence, kv head, first query, end of queries, first split,
 *                                                        end of splits, first row in partials or -1, ticket
 *   partials    float [numPartials][partialFloats]       of a tile [split][query][head of the kv head];
 *                                                        values [headDim rounded up to 16] | highest | sum | unused
 *   tickets     int32 [numTickets]                       splits that have been gathered; 0 between two layers
 * </pre>
 */
public final class AttentionBatch {
  /** Queries of one tile at most. */
  public static final int TILE_QUERIES = 32;

  /** Keys of a split, {@code TACHO_ATTENTION_SPLIT_KEYS}. */
  public static final int SPLIT_KEYS = 512;

  /** Ints of a work item. */
  public static final int ITEM_INTS = 8;

  /** Items that a step should have for each worker, so that their shares can be made alike. */
  private static final int ITEMS_PER_WORKER = 4;

  /** What reading a key from memory costs, in rows that meet it. */
  private static final int KEY_COST = 2;

  private static final VarHandle TICKET = JAVA_INT.varHandle();

  private final int maxSequences;
  private final int maxTokens;
  private final int blockTableStride;
  private final int workers;
  private final int numKvHeads;
  private final int groupSize;
  private final MemorySegment qStarts;
  private final MemorySegment contextLens;
  private final MemorySegment blockTable;
  private final MemorySegment items;
  private final MemorySegment partials;
  private final MemorySegment tickets;
  private final long[] costs;
  private final int numPartials;
  private int numSequences;
  private int numItems;
  private int usedPartials;
  private int usedTickets;

  /**
   * @param arena owns the memory
   * @param maxSequences sequences of a step at most
   * @param maxTokens tokens of a step at most
   * @param maxBlocks blocks of a sequence at most
   * @param workers threads among which the items will be shared
   * @param shape heads of the layers
   */
  public AttentionBatch(
      Arena arena, int maxSequences, int maxTokens, int maxBlocks, int workers, AttentionShape shape) {
    this.maxSequences = maxSequences;
    this.maxTokens = maxTokens;
    this.blockTableStride = maxBlocks;
    this.workers = workers;
    this.numKvHeads = shape.numKvHeads();
    this.groupSize = shape.groupSize();
    qStarts = arena.allocate(JAVA_INT, maxSequences + 1L);
    contextLens = arena.allocate(JAVA_INT, maxSequences);
    blockTable = arena.allocate(JAVA_INT, Math.multiplyExact((long) maxSequences, maxBlocks));
    int maxItems = Math.toIntExact(maxItems(maxSequences, maxTokens, workers, shape));
    items = arena.allocate(JAVA_INT, Math.multiplyExact((long) maxItems, ITEM_INTS));
    costs = new long[maxItems + 1];
    numPartials = Math.toIntExact(maxPartials(maxSequences, maxBlocks, workers, shape));
    partials = arena.allocate(JAVA_FLOAT, Math.multiplyExact((long) numPartials, partialFloats(shape.headDim())));
    tickets = arena.allocate(JAVA_INT, wantedItems(workers));
  }

  /** Bytes off the heap that one of these takes, alignment apart; the parameters are the constructor's. */
  public static long bytes(int maxSequences, int maxTokens, int maxBlocks, int workers, AttentionShape shape) {
    long ints =
        Math.multiplyExact((long) maxSequences, maxBlocks + 2L)
            + 1
            + Math.multiplyExact(maxItems(maxSequences, maxTokens, workers, shape), ITEM_INTS)
            + wantedItems(workers);
    long floats =
        Math.multiplyExact(maxPartials(maxSequences, maxBlocks, workers, shape), partialFloats(shape.headDim()));
    return Math.multiplyExact(Math.addExact(ints, floats), Float.BYTES);
  }

  /** Floats of a row of partials. */
  public static int partialFloats(int headDim) {
    return Math.ceilDiv(headDim, 16) * 16 + 16;
  }

  private static int wantedItems(int workers) {
    return ITEMS_PER_WORKER * workers;
  }

  /** A tile that costs c of C becomes ceil(c W / C) items at most, W of them wanted: all in all 2 W more than tiles. */
  private static long maxItems(int maxSequences, int maxTokens, int workers, AttentionShape shape) {
    long tiles = Math.multiplyExact(maxSequences + (long) maxTokens / TILE_QUERIES, shape.numKvHeads());
    return tiles + 2L * wantedItems(workers);
  }

  private static boolean sharesHeads(int numKvHeads, int workers) {
    return numKvHeads % workers == 0;
  }

  /** Room for as many decodes of full length as can be worth cutting; none where heads are shared. */
  private static long maxPartials(int maxSequences, int maxBlocks, int workers, AttentionShape shape) {
    if (sharesHeads(shape.numKvHeads(), workers)) {
      return 0;
    }
    long tiles = Math.min(wantedItems(workers), (long) maxSequences * shape.numKvHeads());
    return tiles * Math.ceilDiv(maxBlocks * KvCacheLayer.BLOCK_TOKENS, SPLIT_KEYS) * shape.groupSize();
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
    return s;
  }

  /** Sets entry {@code index} of a sequence's block table. */
  public void setBlock(int sequence, int index, int block) {
    if (index < 0 || index >= blockTableStride) {
      throw new IllegalArgumentException("block " + index + " of a table of " + blockTableStride);
    }
    blockTable.setAtIndex(JAVA_INT, (long) sequence * blockTableStride + index, block);
  }

  /** Makes the work items of the sequences that have been added. */
  public void plan() {
    numItems = 0;
    usedPartials = 0;
    usedTickets = 0;
    tickets.fill((byte) 0);
    long total = 0;
    for (int s = 0; s < numSequences; s++) {
      for (int q = 0; q < queryCount(s); q += TILE_QUERIES) {
        total += tileCost(s, q) * numKvHeads;
      }
    }
    for (int head = 0; head < numKvHeads; head++) {
      for (int s = 0; s < numSequences; s++) {
        for (int q = 0; q < queryCount(s); q += TILE_QUERIES) {
          addTile(s, head, q, total);
        }
      }
    }
  }

  /**
   * True if the items of worker w are those of kv heads [{@code numKvHeads w / workers}, {@code numKvHeads (w + 1) /
   * workers}) and no others, whatever the batch: then a worker may read what it wrote for its heads without waiting.
   */
  public boolean sharesHeads() {
    return sharesHeads(numKvHeads, workers);
  }

  private int tileEnd(int sequence, int query) {
    return Math.min(query + TILE_QUERIES, queryCount(sequence));
  }

  /** Keys that the last query of a tile sees, a window apart. */
  private int tileKeys(int sequence, int query) {
    return contextLen(sequence) - queryCount(sequence) + tileEnd(sequence, query);
  }

  private long tileCost(int sequence, int query) {
    return (long) tileKeys(sequence, query) * ((tileEnd(sequence, query) - query) * groupSize + KEY_COST);
  }

  private void addTile(int sequence, int head, int query, long total) {
    int splits = Math.ceilDiv(tileKeys(sequence, query), SPLIT_KEYS);
    int rows = (tileEnd(sequence, query) - query) * groupSize;
    long cost = tileCost(sequence, query);
    int parts = sharesHeads() ? 1 : (int) Math.min(splits, Math.ceilDiv(cost * wantedItems(workers), total));
    boolean cut = parts > 1 && (long) splits * rows <= numPartials - usedPartials;
    int pieces = cut ? parts : 1;
    for (int i = 0; i < pieces; i++) {
      int begin = (int) ((long) splits * i / pieces);
      int end = (int) ((long) splits * (i + 1) / pieces);
      long at = (long) numItems * ITEM_INTS;
      items.setAtIndex(JAVA_INT, at, sequence);
      items.setAtIndex(JAVA_INT, at + 1, head);
      items.setAtIndex(JAVA_INT, at + 2, query);
      items.setAtIndex(JAVA_INT, at + 3, tileEnd(sequence, query));
      items.setAtIndex(JAVA_INT, at + 4, begin);
      items.setAtIndex(JAVA_INT, at + 5, end);
      items.setAtIndex(JAVA_INT, at + 6, cut ? usedPartials : -1);
      items.setAtIndex(JAVA_INT, at + 7, cut ? usedTickets : 0);
      costs[numItems + 1] = costs[numItems] + cost * (end - begin) / splits;
      numItems++;
    }
    if (cut) {
      usedPartials += splits * rows;
      usedTickets++;
    }
  }

  /** The first of a worker's items: shares are contiguous and cost about the same. */
  public int begin(int worker) {
    long border = costs[numItems] * worker / workers;
    int low = 0;
    int high = numItems;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if ((costs[middle] + costs[middle + 1]) / 2 < border) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The end of a worker's items. */
  public int end(int worker) {
    return worker == workers - 1 ? numItems : begin(worker + 1);
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

  private int item(int item, int member) {
    return items.getAtIndex(JAVA_INT, (long) item * ITEM_INTS + member);
  }

  /** The sequence of a work item. */
  public int itemSequence(int item) {
    return item(item, 0);
  }

  /** The kv head of a work item. */
  public int itemKvHead(int item) {
    return item(item, 1);
  }

  /** The first query of a work item, counted from the sequence's first one in this step. */
  public int itemQueryBegin(int item) {
    return item(item, 2);
  }

  /** The end of a work item's queries. */
  public int itemQueryEnd(int item) {
    return item(item, 3);
  }

  /** The first split of a work item. */
  public int itemSplitBegin(int item) {
    return item(item, 4);
  }

  /** The end of a work item's splits. */
  public int itemSplitEnd(int item) {
    return item(item, 5);
  }

  /** The first row of a work item's tile in the partials, or -1 if the item is the whole tile. */
  public int itemPartial(int item) {
    return item(item, 6);
  }

  /** The ticket of a work item's tile, where it has partials. */
  public int itemTicket(int item) {
    return item(item, 7);
  }

  /** Splits of a work item's tile. */
  public int tileSplits(int item) {
    int sequence = itemSequence(item);
    return Math.ceilDiv(contextLen(sequence) - queryCount(sequence) + itemQueryEnd(item), SPLIT_KEYS);
  }

  /**
   * Says that an item has gathered its splits; called once an item, by the worker that has done so. What the other
   * items of the tile have left is visible to the one that comes last.
   *
   * @return true if the whole tile has been gathered
   */
  public boolean arrive(int item) {
    if (itemPartial(item) < 0) {
      return true;
    }
    int mine = itemSplitEnd(item) - itemSplitBegin(item);
    long at = (long) itemTicket(item) * Integer.BYTES;
    boolean last = (int) TICKET.getAndAdd(tickets, at, mine) + mine == tileSplits(item);
    if (last) {
      tickets.set(JAVA_INT, at, 0);
    }
    return last;
  }

  /** Ints between the tables of two sequences. */
  public int blockTableStride() {
    return blockTableStride;
  }

  /** Rows of partials. */
  public int numPartials() {
    return numPartials;
  }

  /** Tickets. */
  public int numTickets() {
    return (int) (tickets.byteSize() / Integer.BYTES);
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

  /** See the drawing. */
  public MemorySegment partials() {
    return partials;
  }

  /** See the drawing. */
  public MemorySegment tickets() {
    return tickets;
  }
}
