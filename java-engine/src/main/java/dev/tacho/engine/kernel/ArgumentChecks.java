package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * What every provider checks before it computes anything: shapes against the sizes of their segments, and every index
 * that comes from memory (token ids, slots, block numbers, work items) against its range. After these checks no
 * address outside the operands can be formed, so a provider may hand plain pointers to native code.
 *
 * <p>All methods are static, keep nothing, and allocate only to say what is wrong. Faults are {@link
 * IllegalArgumentException}s that name the operand and the limit.
 */
public final class ArgumentChecks {
  private ArgumentChecks() {}

  /** Items of a matrix with {@code n} rows: groups of {@link Kernels#ROW_GROUP}. */
  public static int rowGroups(int n) {
    return (n + Kernels.ROW_GROUP - 1) / Kernels.ROW_GROUP;
  }

  /** {@code [begin, end)} lies in {@code [0, items)}. */
  public static void range(int begin, int end, long items) {
    if (begin < 0 || end < begin || end > items) {
      throw new IllegalArgumentException("items [" + begin + ", " + end + ") of " + items);
    }
  }

  /** {@code value >= least}. */
  public static void atLeast(String name, long value, long least) {
    if (value < least) {
      throw new IllegalArgumentException(name + " is " + value + ", expected at least " + least);
    }
  }

  /** A live off-heap segment that this thread may use, of at least {@code bytes}, aligned to {@code alignment}. */
  public static void segment(String name, MemorySegment segment, long bytes, long alignment) {
    if (!segment.isNative()) {
      throw new IllegalArgumentException(name + " is on the heap, kernels work on off-heap memory");
    }
    if (!segment.scope().isAlive()) {
      throw new IllegalArgumentException(name + " is memory that was already released");
    }
    if (!segment.isAccessibleBy(Thread.currentThread())) {
      throw new IllegalArgumentException(name + " is memory that only another thread may use");
    }
    if (segment.byteSize() < bytes) {
      throw new IllegalArgumentException(name + " has " + segment.byteSize() + " bytes, its shape needs " + bytes);
    }
    if (segment.address() % alignment != 0) {
      throw new IllegalArgumentException(name + " is not aligned to " + alignment + " bytes");
    }
  }

  /** The same for memory that will be written. */
  public static void writable(String name, MemorySegment segment, long bytes, long alignment) {
    segment(name, segment, bytes, alignment);
    if (segment.isReadOnly()) {
      throw new IllegalArgumentException(name + " is read-only");
    }
  }

  /** {@code rows} rows of {@code columns} floats, {@code ld} elements apart, to be read. */
  public static void floats(String name, MemorySegment segment, long rows, int ld, long columns) {
    segment(name, segment, matrixBytes(name, rows, ld, columns), Float.BYTES);
  }

  /** {@code rows} rows of {@code columns} floats, {@code ld} elements apart, to be written. */
  public static void writableFloats(String name, MemorySegment segment, long rows, int ld, long columns) {
    writable(name, segment, matrixBytes(name, rows, ld, columns), Float.BYTES);
  }

  private static long matrixBytes(String name, long rows, int ld, long columns) {
    if (rows < 0 || columns < 0 || ld < columns) {
      throw new IllegalArgumentException(
          name + ": " + rows + " rows of " + columns + " elements, " + ld + " elements apart");
    }
    return rows == 0 ? 0 : ((rows - 1) * ld + columns) * Float.BYTES;
  }

  /** Rows and columns that can be packed. */
  public static void weightShape(DType dtype, int n, int k) {
    atLeast("n", n, 1);
    atLeast("k", k, 1);
    if (k % dtype.blockElements() != 0) {
      throw new IllegalArgumentException(
          "rows of " + k + " elements are not whole blocks of " + dtype.blockElements() + " of " + dtype);
    }
  }

  /**
   * A packed weight that will be read.
   *
   * @param weight to be read
   * @param bytes its size as this provider packs it
   */
  public static void weight(Weight weight, long bytes) {
    weightShape(weight.dtype(), weight.n(), weight.k());
    segment("weight", weight.data(), bytes, Float.BYTES);
  }

  /** {@link Kernels#weightPack}. */
  public static void weightPack(Weight weight, long packedBytes, MemorySegment source, int begin, int end) {
    weightShape(weight.dtype(), weight.n(), weight.k());
    range(begin, end, rowGroups(weight.n()));
    segment("source", source, Math.multiplyExact(weight.n(), weight.dtype().bytes(weight.k())), 1);
    writable("weight", weight.data(), packedBytes, Float.BYTES);
  }

  /** {@link Kernels#embeddingLookup}. */
  public static void embeddingLookup(
      Weight table, long packedBytes, MemorySegment ids, int m, MemorySegment y, int ldy, int begin, int end) {
    weight(table, packedBytes);
    range(begin, end, m);
    segment("ids", ids, (long) m * Integer.BYTES, Integer.BYTES);
    writableFloats("y", y, m, ldy, table.k());
    for (int i = begin; i < end; i++) {
      int id = ids.getAtIndex(JAVA_INT, i);
      if (id < 0 || id >= table.n()) {
        throw new IllegalArgumentException("ids[" + i + "] is " + id + ", the table has " + table.n() + " rows");
      }
    }
  }

  /** Elements of a row of activations. */
  public static void activationShape(ActivationFormat format, int k) {
    atLeast("k", k, 1);
    if (k % format.blockElements() != 0) {
      throw new IllegalArgumentException(
          "rows of " + k + " elements are not whole blocks of " + format.blockElements() + " of " + format);
    }
  }

  /**
   * Rows of activations.
   *
   * @param rowBytes bytes of a row in this provider's layout
   */
  private static void activations(
      String name, ActivationRows rows, long rowBytes, int m, boolean written) {
    activationShape(rows.format(), rows.k());
    if (m < 0 || rows.rowBytes() < rowBytes || rows.rowBytes() % Float.BYTES != 0) {
      throw new IllegalArgumentException(
          name + ": " + m + " rows of " + rowBytes + " bytes, " + rows.rowBytes() + " bytes apart");
    }
    long bytes = m == 0 ? 0 : (m - 1) * rows.rowBytes() + rowBytes;
    if (written) {
      writable(name, rows.data(), bytes, Float.BYTES);
    } else {
      segment(name, rows.data(), bytes, Float.BYTES);
    }
  }

  /** {@link Kernels#activationPack}. */
  public static void activationPack(
      MemorySegment x, int ldx, int m, ActivationRows packed, long rowBytes, int begin, int end) {
    activations("packed", packed, rowBytes, m, true);
    range(begin, end, Math.ceilDiv(packed.k(), Kernels.ACTIVATION_BLOCK));
    floats("x", x, m, ldx, packed.k());
  }

  /**
   * {@link Kernels#matmul}.
   *
   * @param format what the weight's type is multiplied with
   * @param rowBytes bytes of a row in this provider's layout
   */
  public static void matmul(
      Weight w,
      long packedBytes,
      @Nullable MemorySegment bias,
      ActivationRows x,
      ActivationFormat format,
      long rowBytes,
      int m,
      MemorySegment y,
      int ldy,
      int begin,
      int end) {
    weight(w, packedBytes);
    range(begin, end, rowGroups(w.n()));
    if (x.format() != format || x.k() != w.k()) {
      throw new IllegalArgumentException(
          "x has rows of " + x.k() + " elements as " + x.format() + ", the weight of " + w.dtype() + " needs " + w.k()
              + " as " + format);
    }
    activations("x", x, rowBytes, m, false);
    writableFloats("y", y, m, ldy, w.n());
    if (bias != null) {
      segment("bias", bias, (long) w.n() * Float.BYTES, Float.BYTES);
    }
  }

  /** {@link Kernels#rmsNorm}. */
  public static void rmsNorm(
      MemorySegment x,
      int ldx,
      MemorySegment weight,
      float epsilon,
      int m,
      ActivationRows y,
      long rowBytes,
      int begin,
      int end) {
    activations("y", y, rowBytes, m, true);
    range(begin, end, m);
    floats("x", x, m, ldx, y.k());
    segment("weight", weight, (long) y.k() * Float.BYTES, Float.BYTES);
    if (!(epsilon >= 0) || Float.isInfinite(epsilon)) {
      throw new IllegalArgumentException("epsilon is " + epsilon + ", expected a finite number from 0");
    }
  }

  /** {@link Kernels#siluMul}; {@code rowBytes} of y in this provider's layout. */
  public static void siluMul(
      MemorySegment gate,
      int ldGate,
      MemorySegment up,
      int ldUp,
      int m,
      ActivationRows y,
      long rowBytes,
      int begin,
      int end) {
    activations("y", y, rowBytes, m, true);
    range(begin, end, Math.ceilDiv(y.k(), Kernels.ACTIVATION_BLOCK));
    floats("gate", gate, m, ldGate, y.k());
    floats("up", up, m, ldUp, y.k());
  }

  /** {@link Kernels#rope}. */
  public static void rope(
      int ropeDim,
      MemorySegment cosSin,
      int tokens,
      int numHeads,
      int headDim,
      MemorySegment x,
      int ldx,
      int begin,
      int end) {
    atLeast("numHeads", numHeads, 1);
    atLeast("ropeDim", ropeDim, 2);
    if (ropeDim % 2 != 0 || ropeDim > headDim) {
      throw new IllegalArgumentException(
          "ropeDim is " + ropeDim + ", expected an even number up to the head size " + headDim);
    }
    range(begin, end, tokens);
    segment("cosSin", cosSin, (long) tokens * ropeDim * Float.BYTES, Float.BYTES);
    writableFloats("x", x, tokens, ldx, (long) numHeads * headDim);
  }

  /** A layer's cache as a kernel finds it: its memory may have been released since the record was made. */
  private static void cache(KvCacheLayer cache) {
    long bytes = cache.numBlocks() * KvCacheLayer.blockBytes(cache.dtype(), cache.numKvHeads(), cache.headDim());
    writable("K cache", cache.k(), bytes, cache.alignment());
    writable("V cache", cache.v(), bytes, cache.alignment());
  }

  /** {@link Kernels#kvWrite}. */
  public static void kvWrite(
      KvCacheLayer cache,
      MemorySegment slots,
      int tokens,
      MemorySegment k,
      int ldk,
      MemorySegment v,
      int ldv,
      int begin,
      int end) {
    cache(cache);
    range(begin, end, cache.numKvHeads());
    long columns = (long) cache.numKvHeads() * cache.headDim();
    floats("k", k, tokens, ldk, columns);
    floats("v", v, tokens, ldv, columns);
    segment("slots", slots, (long) tokens * Long.BYTES, Long.BYTES);
    long numSlots = (long) cache.numBlocks() * KvCacheLayer.BLOCK_TOKENS;
    for (int i = 0; i < tokens; i++) {
      long slot = slots.getAtIndex(JAVA_LONG, i);
      if (slot < -1 || slot >= numSlots) {
        throw new IllegalArgumentException("slots[" + i + "] is " + slot + ", the cache has " + numSlots + " slots");
      }
    }
  }

  /** {@link Kernels#kvCopyBlocks}. */
  public static void kvCopyBlocks(
      MemorySegment[] caches,
      long blockBytes,
      int numBlocks,
      MemorySegment pairs,
      int numPairs,
      int begin,
      int end) {
    atLeast("blockBytes", blockBytes, 1);
    atLeast("numBlocks", numBlocks, 1);
    atLeast("numPairs", numPairs, 0);
    range(begin, end, (long) caches.length * numPairs);
    segment("pairs", pairs, 2L * numPairs * Long.BYTES, Long.BYTES);
    long cacheBytes = Math.multiplyExact(blockBytes, numBlocks);
    for (MemorySegment cache : caches) {
      writable("cache", cache, cacheBytes, 1);
    }
    for (int i = 0; i < numPairs; i++) {
      pair(pairs, i, numPairs, numBlocks);
    }
  }

  /** A pair's blocks, and that no other pair touches its destination; compared one by one, as pairs are few. */
  private static void pair(MemorySegment pairs, int pair, int numPairs, int numBlocks) {
    long source = pairs.getAtIndex(JAVA_LONG, 2L * pair);
    long destination = pairs.getAtIndex(JAVA_LONG, 2L * pair + 1);
    long outside = source < 0 || source >= numBlocks ? source : destination;
    if (outside < 0 || outside >= numBlocks) {
      throw new IllegalArgumentException(
          "pair " + pair + " names block " + outside + ", the cache has " + numBlocks + " blocks");
    }
    if (source == destination) {
      throw new IllegalArgumentException("pair " + pair + " copies block " + source + " to itself");
    }
    for (int i = 0; i < numPairs; i++) {
      boolean read = pairs.getAtIndex(JAVA_LONG, 2L * i) == destination;
      boolean written = i != pair && pairs.getAtIndex(JAVA_LONG, 2L * i + 1) == destination;
      if (read || written) {
        throw new IllegalArgumentException(
            "pair " + pair + " copies to block " + destination + ", which pair " + i
                + (read ? " reads" : " copies to"));
      }
    }
  }

  /** {@link Kernels#attention}: the shapes, and of the items those in {@code [begin, end)}. */
  public static void attention(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      MemorySegment q,
      int ldq,
      MemorySegment out,
      int ldo,
      int begin,
      int end,
      KernelWorker worker,
      long scratchBytes) {
    cache(cache);
    if (shape.numKvHeads() != cache.numKvHeads() || shape.headDim() != cache.headDim()) {
      throw new IllegalArgumentException(
          shape.numKvHeads() + " kv heads of " + shape.headDim() + " elements in the shape, " + cache.numKvHeads()
              + " of " + cache.headDim() + " in the cache");
    }
    range(begin, end, batch.numItems());
    long columns = (long) shape.numHeads() * shape.headDim();
    floats("q", q, batch.numTokens(), ldq, columns);
    writableFloats("out", out, batch.numTokens(), ldo, columns);
    segment("scratch", worker.scratch(), scratchBytes, Float.BYTES);
    MemorySegment sinks = shape.sinks();
    if (sinks != null) {
      segment("sinks", sinks, (long) shape.numHeads() * Float.BYTES, Float.BYTES);
    }
    for (int i = begin; i < end; i++) {
      attentionItem(shape, cache, batch, i);
    }
  }

  private static void attentionItem(AttentionShape shape, KvCacheLayer cache, AttentionBatch batch, int item) {
    int sequence = batch.itemSequence(item);
    int kvHead = batch.itemKvHead(item);
    int begin = batch.itemQueryBegin(item);
    int end = batch.itemQueryEnd(item);
    if (sequence < 0 || sequence >= batch.numSequences() || kvHead < 0 || kvHead >= shape.numKvHeads()) {
      throw new IllegalArgumentException(
          "item " + item + " is for sequence " + sequence + " of " + batch.numSequences() + " and kv head " + kvHead
              + " of " + shape.numKvHeads());
    }
    int queries = batch.queryCount(sequence);
    int contextLen = batch.contextLen(sequence);
    if (begin < 0 || end <= begin || end > queries || end - begin > AttentionBatch.TILE_QUERIES) {
      throw new IllegalArgumentException(
          "item " + item + " has queries [" + begin + ", " + end + ") of " + queries + ", at most "
              + AttentionBatch.TILE_QUERIES + " at once");
    }
    int lastKey = contextLen - queries + end - 1;
    if (contextLen < queries || lastKey / KvCacheLayer.BLOCK_TOKENS >= batch.blockTableStride()) {
      throw new IllegalArgumentException(
          "sequence " + sequence + " has " + contextLen + " tokens in the cache, " + queries + " queries and "
              + batch.blockTableStride() + " blocks");
    }
    attentionSplits(shape, batch, item);
    int firstKey =
        Math.max(
            shape.firstKey(contextLen - queries + begin), batch.itemSplitBegin(item) * AttentionBatch.SPLIT_KEYS);
    lastKey = Math.min(lastKey, batch.itemSplitEnd(item) * AttentionBatch.SPLIT_KEYS - 1);
    for (int b = firstKey / KvCacheLayer.BLOCK_TOKENS; b <= lastKey / KvCacheLayer.BLOCK_TOKENS; b++) {
      int block = batch.block(sequence, b);
      if (block < 0 || block >= cache.numBlocks()) {
        throw new IllegalArgumentException(
            "block " + b + " of sequence " + sequence + " is " + block + ", the cache has " + cache.numBlocks()
                + " blocks");
      }
    }
  }

  /** The splits of an item, and where it keeps what they give. */
  private static void attentionSplits(AttentionShape shape, AttentionBatch batch, int item) {
    int begin = batch.itemSplitBegin(item);
    int end = batch.itemSplitEnd(item);
    int splits = batch.tileSplits(item);
    int partial = batch.itemPartial(item);
    if (begin < 0 || end <= begin || end > splits || (partial == -1 && end - begin != splits)) {
      throw new IllegalArgumentException(
          "item " + item + " has splits [" + begin + ", " + end + ") of " + splits
              + (partial == -1 ? " and no partials" : ""));
    }
    if (partial == -1) {
      return;
    }
    long rows = (long) splits * (batch.itemQueryEnd(item) - batch.itemQueryBegin(item)) * shape.groupSize();
    int ticket = batch.itemTicket(item);
    if (partial < 0 || partial + rows > batch.numPartials() || ticket < 0 || ticket >= batch.numTickets()) {
      throw new IllegalArgumentException(
          "item " + item + " has " + rows + " partials from " + partial + " of " + batch.numPartials()
              + " and ticket " + ticket + " of " + batch.numTickets());
    }
    long floats = (long) batch.numPartials() * AttentionBatch.partialFloats(shape.headDim());
    writable("partials", batch.partials(), floats * Float.BYTES, Float.BYTES);
  }
}
