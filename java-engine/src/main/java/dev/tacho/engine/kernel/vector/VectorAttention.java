package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.FLOATS;
import static dev.tacho.engine.kernel.vector.Lanes.ORDER;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.KvCacheLayer;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;

/**
 * Attention of one work item. Its rows, queries times heads of the kv head, are taken in groups of 16; a group walks
 * the splits of its keys, and a split in chunks of 64 that begin at multiples of 64, whose K and V are turned into
 * floats once for all its rows. A split is gathered by itself and then merged, in ascending order, whether the item
 * holds all splits of the tile or the last of several items finds them in the batch's partials.
 *
 * <p>Scores lie along the 16 tokens of a block, values along the head, so neither needs a sum over lanes. A row meets
 * in a chunk only the keys that it sees, and its arithmetic follows from its own position alone: neither the batch nor
 * the plan changes its bits. Slots that it does not see may hold NaN: their scores are overwritten and their values
 * never multiplied.
 *
 * <pre>
 *   scratch, floats   | K [4 blocks][headDim][16] | V [64][headDim] | out [16 rows][headDim]
 *                     | sums [16 rows][16] | highest [16 rows] | scores [64] | a split's row | merged [16] |
 * </pre>
 */
final class VectorAttention {
  private static final int BLOCK = KvCacheLayer.BLOCK_TOKENS;
  private static final int BLOCK_BYTES = BLOCK * Float.BYTES;
  private static final int CHUNK_KEYS = 64;
  private static final int GROUP_ROWS = 16;
  private static final int WIDE = 4;

  private VectorAttention() {}

  static long scratchBytes(int headDim) {
    return mergedAt(headDim, GROUP_ROWS);
  }

  private static long valuesAt(int headDim) {
    return (long) CHUNK_KEYS * headDim * Float.BYTES;
  }

  private static long outAt(int headDim, int row) {
    return (2L * CHUNK_KEYS + row) * headDim * Float.BYTES;
  }

  private static long sumsAt(int headDim, int row) {
    return outAt(headDim, GROUP_ROWS) + (long) row * BLOCK_BYTES;
  }

  private static long highestAt(int headDim) {
    return sumsAt(headDim, GROUP_ROWS);
  }

  private static long scoresAt(int headDim) {
    return highestAt(headDim) + (long) GROUP_ROWS * Float.BYTES;
  }

  private static long splitRowAt(int headDim) {
    return scoresAt(headDim) + (long) CHUNK_KEYS * Float.BYTES;
  }

  private static long mergedAt(int headDim, int row) {
    return splitRowAt(headDim) + (row + 1L) * AttentionRow.bytes(headDim);
  }

  static void item(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      int item,
      MemorySegment q,
      int ldq,
      MemorySegment out,
      int ldo,
      MemorySegment scratch) {
    int group = shape.groupSize();
    int begin = batch.itemQueryBegin(item) * group;
    int end = batch.itemQueryEnd(item) * group;
    boolean whole = batch.itemPartial(item) < 0;
    for (int row = begin; row < end; row += GROUP_ROWS) {
      int rows = Math.min(GROUP_ROWS, end - row);
      for (int split = batch.itemSplitBegin(item); split < batch.itemSplitEnd(item); split++) {
        gather(shape, cache, batch, item, row, rows, split, q, ldq, scratch);
        for (int i = 0; i < rows; i++) {
          keep(shape, batch, item, row + i, i, split, scratch);
        }
      }
      for (int i = 0; whole && i < rows; i++) {
        finish(shape, batch, item, row + i, mergedAt(shape.headDim(), i), out, ldo, scratch);
      }
    }
    if (batch.arrive(item) && !whole) {
      for (int row = begin; row < end; row++) {
        for (int split = 0; split < batch.tileSplits(item); split++) {
          long from = partialAt(shape, batch, item, row, split);
          merge(shape, batch, item, row, split, batch.partials(), from, mergedAt(shape.headDim(), 0), scratch);
        }
        finish(shape, batch, item, row, mergedAt(shape.headDim(), 0), out, ldo, scratch);
      }
    }
  }

  /** The position of a row, counted [query][head of the kv head]. */
  private static int position(AttentionShape shape, AttentionBatch batch, int item, int row) {
    int sequence = batch.itemSequence(item);
    return batch.contextLen(sequence) - batch.queryCount(sequence) + row / shape.groupSize();
  }

  private static long partialAt(AttentionShape shape, AttentionBatch batch, int item, int row, int split) {
    int first = batch.itemQueryBegin(item) * shape.groupSize();
    int rows = batch.itemQueryEnd(item) * shape.groupSize() - first;
    long index = batch.itemPartial(item) + (long) split * rows + row - first;
    return index * AttentionRow.bytes(shape.headDim());
  }

  /** Takes what row {@code index} of a group has gathered of a split to where it is merged. */
  private static void keep(
      AttentionShape shape, AttentionBatch batch, int item, int row, int index, int split, MemorySegment scratch) {
    int headDim = shape.headDim();
    boolean whole = batch.itemPartial(item) < 0;
    MemorySegment to = whole ? scratch : batch.partials();
    long at = whole ? splitRowAt(headDim) : partialAt(shape, batch, item, row, split);
    float highest = scratch.get(JAVA_FLOAT, highestAt(headDim) + 4L * index);
    float sum = VectorRows.sum(scratch, sumsAt(headDim, index), BLOCK);
    AttentionRow.set(headDim, scratch, outAt(headDim, index), highest, sum, to, at);
    if (whole) {
      merge(shape, batch, item, row, split, scratch, at, mergedAt(headDim, index), scratch);
    }
  }

  /** Adds what a row has gathered of a split to what it has merged, if it sees any key of it. */
  private static void merge(
      AttentionShape shape,
      AttentionBatch batch,
      int item,
      int row,
      int split,
      MemorySegment from,
      long at,
      long merged,
      MemorySegment scratch) {
    int position = position(shape, batch, item, row);
    int first = shape.firstKey(position) / AttentionBatch.SPLIT_KEYS;
    if (split == first) {
      AttentionRow.copy(shape.headDim(), from, at, scratch, merged);
    } else if (split > first && split <= position / AttentionBatch.SPLIT_KEYS) {
      AttentionRow.merge(shape.headDim(), from, at, scratch, merged);
    }
  }

  /** Rows [begin, begin + rows) of an item against one split. */
  private static void gather(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      int item,
      int begin,
      int rows,
      int split,
      MemorySegment q,
      int ldq,
      MemorySegment scratch) {
    int headDim = shape.headDim();
    int group = shape.groupSize();
    int sequence = batch.itemSequence(item);
    int kvHead = batch.itemKvHead(item);
    int firstRow = batch.queryStart(sequence);
    clear(headDim, rows, scratch);
    int splitKey = split * AttentionBatch.SPLIT_KEYS;
    int firstKey = Math.max(shape.firstKey(position(shape, batch, item, begin)), splitKey);
    int lastKey =
        Math.min(position(shape, batch, item, begin + rows - 1), splitKey + AttentionBatch.SPLIT_KEYS - 1);
    for (int chunk = firstKey / CHUNK_KEYS * CHUNK_KEYS; chunk <= lastKey; chunk += CHUNK_KEYS) {
      unpack(cache, batch, sequence, kvHead, chunk, firstKey, lastKey, scratch);
      for (int row = 0; row < rows; row++) {
        int position = position(shape, batch, item, begin + row);
        int from = Math.max(0, Math.max(shape.firstKey(position), splitKey) - chunk);
        int to = Math.min(CHUNK_KEYS, position + 1 - chunk);
        if (from < to) {
          long head = (long) kvHead * group + (begin + row) % group;
          long qAt = ((firstRow + (begin + row) / group) * (long) ldq + head * headDim) * Float.BYTES;
          scores(shape, from, to, q, qAt, scratch);
          float factor = soften(headDim, from, to, row, scratch);
          values(headDim, from, to, row, factor, scratch);
        }
      }
    }
  }

  private static void clear(int headDim, int rows, MemorySegment scratch) {
    for (int row = 0; row < rows; row++) {
      for (int d = 0; d < headDim; d++) {
        scratch.set(JAVA_FLOAT, outAt(headDim, row) + 4L * d, 0);
      }
      for (int lane = 0; lane < BLOCK; lane++) {
        scratch.set(JAVA_FLOAT, sumsAt(headDim, row) + 4L * lane, 0);
      }
      scratch.set(JAVA_FLOAT, highestAt(headDim) + 4L * row, Float.NEGATIVE_INFINITY);
    }
  }

  /** The blocks of a chunk that hold keys of [firstKey, lastKey], as floats. */
  private static void unpack(
      KvCacheLayer cache,
      AttentionBatch batch,
      int sequence,
      int kvHead,
      int chunk,
      int firstKey,
      int lastKey,
      MemorySegment scratch) {
    int first = Math.max(firstKey, chunk) / BLOCK;
    int last = Math.min(lastKey, chunk + CHUNK_KEYS - 1) / BLOCK;
    for (int b = first; b <= last; b++) {
      long from = cache.headOffset(batch.block(sequence, b), kvHead);
      long to = (long) (b - chunk / BLOCK) * BLOCK * cache.headDim() * Float.BYTES;
      KvWidening.keys(cache, from, scratch, to);
      KvWidening.values(cache, from, scratch, valuesAt(cache.headDim()) + to);
    }
  }

  /** Scores of the keys [from, to) of a chunk, minus infinity in the rest of their blocks. */
  private static void scores(
      AttentionShape shape, int from, int to, MemorySegment q, long qAt, MemorySegment scratch) {
    int headDim = shape.headDim();
    long scores = scoresAt(headDim);
    int end = (to + BLOCK - 1) / BLOCK * BLOCK;
    for (int key = from / BLOCK * BLOCK; key < end; key += Lanes.COUNT) {
      long keys = (long) (key / BLOCK) * headDim * BLOCK_BYTES + (long) (key % BLOCK) * Float.BYTES;
      FloatVector even = FloatVector.zero(FLOATS);
      FloatVector odd = FloatVector.zero(FLOATS);
      for (int d = 0; d < headDim; d += 2) {
        long at = keys + (long) d * BLOCK_BYTES;
        FloatVector first = fromMemorySegment(FLOATS, scratch, at, ORDER);
        even = first.fma(broadcast(FLOATS, q.get(JAVA_FLOAT, qAt + 4L * d)), even);
        FloatVector second = fromMemorySegment(FLOATS, scratch, at + BLOCK_BYTES, ORDER);
        odd = second.fma(broadcast(FLOATS, q.get(JAVA_FLOAT, qAt + 4L * d + 4)), odd);
      }
      even.add(odd).mul(shape.scale()).intoMemorySegment(scratch, scores + 4L * key, ORDER);
    }
    int begin = from / BLOCK * BLOCK;
    if (shape.softcap() > 0) {
      Exponential.softcap(scratch, scores + 4L * begin, end - begin, shape.softcap());
    }
    for (int key = begin; key < from; key++) {
      scratch.set(JAVA_FLOAT, scores + 4L * key, Float.NEGATIVE_INFINITY);
    }
    for (int key = to; key < end; key++) {
      scratch.set(JAVA_FLOAT, scores + 4L * key, Float.NEGATIVE_INFINITY);
    }
  }

  /**
   * Turns the scores into exp(score - highest so far) and adds them to the row's sums.
   *
   * @return what the sums and values gathered before were multiplied by, or are to be
   */
  private static float soften(int headDim, int from, int to, int row, MemorySegment scratch) {
    long scores = scoresAt(headDim);
    int first = from / BLOCK * BLOCK;
    int end = (to + BLOCK - 1) / BLOCK * BLOCK;
    long highestAt = highestAt(headDim) + 4L * row;
    float old = scratch.get(JAVA_FLOAT, highestAt);
    float highest = Math.max(old, VectorRows.largest(scratch, scores + 4L * first, 1, end - first));
    scratch.set(JAVA_FLOAT, highestAt, highest);
    float origin = highest == Float.NEGATIVE_INFINITY ? 0 : highest;
    float factor = Exponential.power(old - origin);
    Exponential.powers(scratch, scores + 4L * first, end - first, 1, origin, scratch, scores + 4L * first);
    addWeights(scores, first, end, factor, scratch, sumsAt(headDim, row));
    return factor;
  }

  /** sums = sums * factor + the weights of the keys [first, end), lane by lane of a block. */
  private static void addWeights(long scores, int first, int end, float factor, MemorySegment scratch, long sums) {
    for (int lane = 0; lane < BLOCK; lane += Lanes.COUNT) {
      FloatVector sum = fromMemorySegment(FLOATS, scratch, sums + 4L * lane, ORDER).mul(factor);
      for (int key = first + lane; key < end; key += BLOCK) {
        sum = sum.add(fromMemorySegment(FLOATS, scratch, scores + 4L * key, ORDER));
      }
      sum.intoMemorySegment(scratch, sums + 4L * lane, ORDER);
    }
  }

  /** out = out * factor + weights * V over the keys [from, to) of a chunk. */
  private static void values(int headDim, int from, int to, int row, float factor, MemorySegment scratch) {
    long values = valuesAt(headDim);
    long out = outAt(headDim, row);
    long scores = scoresAt(headDim);
    long step = (long) headDim * Float.BYTES;
    int d = 0;
    for (; d + WIDE * Lanes.COUNT <= headDim; d += WIDE * Lanes.COUNT) {
      wideValues(values + 4L * d, step, from, to, scores, out + 4L * d, factor, scratch);
    }
    for (; d + Lanes.COUNT <= headDim; d += Lanes.COUNT) {
      FloatVector sum = fromMemorySegment(FLOATS, scratch, out + 4L * d, ORDER).mul(factor);
      for (int key = from; key < to; key++) {
        FloatVector value = fromMemorySegment(FLOATS, scratch, values + key * step + 4L * d, ORDER);
        sum = value.fma(broadcast(FLOATS, scratch.get(JAVA_FLOAT, scores + 4L * key)), sum);
      }
      sum.intoMemorySegment(scratch, out + 4L * d, ORDER);
    }
    for (; d < headDim; d++) {
      float sum = scratch.get(JAVA_FLOAT, out + 4L * d) * factor;
      for (int key = from; key < to; key++) {
        float weight = scratch.get(JAVA_FLOAT, scores + 4L * key);
        sum += scratch.get(JAVA_FLOAT, values + key * step + 4L * d) * weight;
      }
      scratch.set(JAVA_FLOAT, out + 4L * d, sum);
    }
  }

  /** Four vectors of the head at a time, so that four chains run side by side. */
  private static void wideValues(
      long values, long step, int from, int to, long scores, long out, float factor, MemorySegment scratch) {
    FloatVector sum0 = fromMemorySegment(FLOATS, scratch, out, ORDER).mul(factor);
    FloatVector sum1 = fromMemorySegment(FLOATS, scratch, out + Lanes.BYTES, ORDER).mul(factor);
    FloatVector sum2 = fromMemorySegment(FLOATS, scratch, out + 2L * Lanes.BYTES, ORDER).mul(factor);
    FloatVector sum3 = fromMemorySegment(FLOATS, scratch, out + 3L * Lanes.BYTES, ORDER).mul(factor);
    for (int key = from; key < to; key++) {
      FloatVector weight = broadcast(FLOATS, scratch.get(JAVA_FLOAT, scores + 4L * key));
      long at = values + key * step;
      sum0 = fromMemorySegment(FLOATS, scratch, at, ORDER).fma(weight, sum0);
      sum1 = fromMemorySegment(FLOATS, scratch, at + Lanes.BYTES, ORDER).fma(weight, sum1);
      sum2 = fromMemorySegment(FLOATS, scratch, at + 2L * Lanes.BYTES, ORDER).fma(weight, sum2);
      sum3 = fromMemorySegment(FLOATS, scratch, at + 3L * Lanes.BYTES, ORDER).fma(weight, sum3);
    }
    sum0.intoMemorySegment(scratch, out, ORDER);
    sum1.intoMemorySegment(scratch, out + Lanes.BYTES, ORDER);
    sum2.intoMemorySegment(scratch, out + 2L * Lanes.BYTES, ORDER);
    sum3.intoMemorySegment(scratch, out + 3L * Lanes.BYTES, ORDER);
  }

  /** Divides a merged row by its sum, the sink's share included, and writes it. */
  private static void finish(
      AttentionShape shape,
      AttentionBatch batch,
      int item,
      int row,
      long merged,
      MemorySegment out,
      int ldo,
      MemorySegment scratch) {
    int headDim = shape.headDim();
    int head = batch.itemKvHead(item) * shape.groupSize() + row % shape.groupSize();
    double sum = AttentionRow.sum(headDim, scratch, merged);
    double factor = 1;
    MemorySegment sinks = shape.sinks();
    if (sinks != null) {
      double old = AttentionRow.highest(headDim, scratch, merged);
      double sink = sinks.getAtIndex(JAVA_FLOAT, head);
      double highest = Math.max(old, sink);
      factor = Math.exp(old - highest);
      sum = sum * factor + Math.exp(sink - highest);
    }
    float share = (float) (factor / sum);
    long outRow = batch.queryStart(batch.itemSequence(item)) + (long) row / shape.groupSize();
    long target = (outRow * ldo + (long) head * headDim) * Float.BYTES;
    for (int d = 0; d < headDim; d++) {
      out.set(JAVA_FLOAT, target + 4L * d, scratch.get(JAVA_FLOAT, merged + 4L * d) * share);
    }
  }
}
