package dev.tacho.engine.kernel;

/**
 * Adds the work of {@code [begin, end)} of an operation to a worker's counter line, computed from shapes alone, so that
 * counters do not depend on the provider: the same table as native/src/core/flop_counters.h, which all Java providers
 * share through this class.
 *
 * <p>A multiply-add is two flops; exp, division and square root are one each. Bytes are those of the operands once, as
 * if from memory; index arrays are not counted. An empty range adds nothing, not even a call; neither does an operation
 * without rows. Stateless; the line belongs to the calling thread.
 */
public final class OperationCost {
  private OperationCost() {}

  /** Counts {@link Kernels#weightPack}. */
  public static void weightPack(Weight weight, int begin, int end, KernelWorker worker) {
    if (begin < end) {
      long bytes = fileBytes(weight, rows(weight, begin, end));
      worker.count(Operation.WEIGHT_PACK, 0, bytes, bytes);
    }
  }

  /** Counts {@link Kernels#embeddingLookup}. */
  public static void embeddingLookup(Weight table, int begin, int end, KernelWorker worker) {
    if (begin < end) {
      long rows = (long) end - begin;
      worker.count(
          Operation.EMBEDDING_LOOKUP, 0, fileBytes(table, rows), Float.BYTES * rows * table.k());
    }
  }

  /** Counts {@link Kernels#activationPack}; both forms of the activations count as floats. */
  public static void activationPack(int k, int m, int begin, int end, KernelWorker worker) {
    if (begin < end && m > 0) {
      long bytes = columns(k, begin, end) * m * Float.BYTES;
      worker.count(Operation.ACTIVATION_PACK, 0, bytes, bytes);
    }
  }

  /** Counts {@link Kernels#matmul}; a bias is free. Activations count as floats, whatever their form. */
  public static void matmul(Weight w, int m, boolean accumulate, int begin, int end, KernelWorker worker) {
    if (begin < end && m > 0) {
      long columns = rows(w, begin, end);
      long added = accumulate ? columns * m : 0;
      worker.count(
          Operation.MATMUL,
          2L * m * columns * w.k() + added,
          fileBytes(w, columns) + Float.BYTES * ((long) m * w.k() + added),
          Float.BYTES * columns * m);
    }
  }

  /** Counts {@link Kernels#rmsNorm} over rows of {@code n}. */
  public static void rmsNorm(int n, int begin, int end, KernelWorker worker) {
    if (begin < end) {
      long elements = (long) (end - begin) * n;
      worker.count(
          Operation.RMS_NORM, 4 * elements, Float.BYTES * (elements + n), Float.BYTES * elements);
    }
  }

  /** Counts {@link Kernels#rope}. */
  public static void rope(int ropeDim, int numHeads, int begin, int end, KernelWorker worker) {
    if (begin < end) {
      long elements = (long) (end - begin) * ropeDim;
      worker.count(
          Operation.ROPE,
          3 * elements * numHeads,
          Float.BYTES * elements * (numHeads + 1),
          Float.BYTES * elements * numHeads);
    }
  }

  /**
   * Counts {@link Kernels#kvWrite}.
   *
   * @param tokens rows of the call
   * @param written tokens whose slot is not -1
   */
  public static void kvWrite(KvCacheLayer cache, int tokens, long written, int begin, int end, KernelWorker worker) {
    if (begin < end && tokens > 0) {
      long heads = 2 * written * (end - begin);
      worker.count(
          Operation.KV_WRITE,
          0,
          Float.BYTES * heads * cache.headDim(),
          heads * KvCacheLayer.headBytes(cache.dtype(), cache.headDim()));
    }
  }

  /**
   * Counts {@link Kernels#attention}: the exact causal and windowed part. The queries and results of a tile count with
   * the item of its first split.
   */
  public static void attention(
      AttentionShape shape, KvCacheLayer cache, AttentionBatch batch, int begin, int end, KernelWorker worker) {
    if (begin >= end) {
      return;
    }
    long visible = 0;
    long keys = 0;
    long queries = 0;
    for (int item = begin; item < end; item++) {
      int sequence = batch.itemSequence(item);
      int first = batch.itemQueryBegin(item);
      int count = batch.itemQueryEnd(item) - first;
      int position = batch.contextLen(sequence) - batch.queryCount(sequence) + first;
      int keyBegin = batch.itemSplitBegin(item) * AttentionBatch.SPLIT_KEYS;
      int keyEnd = batch.itemSplitEnd(item) * AttentionBatch.SPLIT_KEYS;
      for (int p = position; p < position + count; p++) {
        visible += Math.max(0, Math.min(p + 1, keyEnd) - Math.max(shape.firstKey(p), keyBegin));
      }
      keys += Math.max(0, Math.min(position + count, keyEnd) - Math.max(shape.firstKey(position), keyBegin));
      queries += keyBegin == 0 ? count : 0;
    }
    long queryBytes = Float.BYTES * queries * shape.groupSize() * shape.headDim();
    worker.count(
        Operation.ATTENTION,
        4 * visible * shape.groupSize() * shape.headDim(),
        2 * keys * KvCacheLayer.headBytes(cache.dtype(), shape.headDim()) + queryBytes,
        queryBytes);
  }

  /** Counts {@link Kernels#kvCopyBlocks}. */
  public static void kvCopyBlocks(long blockBytes, int begin, int end, KernelWorker worker) {
    if (begin < end) {
      long bytes = blockBytes * (end - begin);
      worker.count(Operation.KV_COPY_BLOCKS, 0, bytes, bytes);
    }
  }

  /** Counts {@link Kernels#siluMul}; every form of the result counts as floats. */
  public static void siluMul(int k, int m, int begin, int end, KernelWorker worker) {
    if (begin < end && m > 0) {
      long elements = m * columns(k, begin, end);
      worker.count(Operation.SILU_MUL, 5 * elements, 2L * Float.BYTES * elements, Float.BYTES * elements);
    }
  }

  /** Columns in a range of blocks. */
  private static long columns(int k, int begin, int end) {
    return Math.min((long) end * Kernels.ACTIVATION_BLOCK, k) - (long) begin * Kernels.ACTIVATION_BLOCK;
  }

  private static long rows(Weight weight, int begin, int end) {
    return Math.min((long) end * Kernels.ROW_GROUP, weight.n()) - (long) begin * Kernels.ROW_GROUP;
  }

  private static long fileBytes(Weight weight, long rows) {
    return rows * weight.dtype().bytes(weight.k());
  }
}
