package dev.tacho.engine.kernel.scalar;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.AttentionBatch;
import dev.tacho.engine.kernel.AttentionShape;
import dev.tacho.engine.kernel.KvCacheLayer;
import java.lang.foreign.MemorySegment;

/**
 * Attention of one query head over the keys it sees, in two passes: the largest score, then the weighted sum. Scores
 * are computed twice rather than kept, so that no context length needs scratch beyond one head. Stateless.
 *
 * <p>A sum over all keys that is rounded once knows no splits: of a tile that is cut into items, the last one to come
 * does it all.
 */
final class ScalarAttention {
  private ScalarAttention() {}

  /** One work item of a batch; {@code scratch} holds headDim doubles. */
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
    if (!batch.arrive(item)) {
      return;
    }
    int sequence = batch.itemSequence(item);
    int kvHead = batch.itemKvHead(item);
    int firstRow = batch.queryStart(sequence);
    int firstPosition = batch.contextLen(sequence) - batch.queryCount(sequence);
    int groupSize = shape.groupSize();
    for (int query = batch.itemQueryBegin(item); query < batch.itemQueryEnd(item); query++) {
      for (int head = kvHead * groupSize; head < (kvHead + 1) * groupSize; head++) {
        long qAt = (long) (firstRow + query) * ldq + (long) head * shape.headDim();
        long outAt = (long) (firstRow + query) * ldo + (long) head * shape.headDim();
        head(shape, cache, batch, sequence, kvHead, head, firstPosition + query, q, qAt, out, outAt, scratch);
      }
    }
  }

  private static void head(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      int sequence,
      int kvHead,
      int head,
      int position,
      MemorySegment q,
      long qAt,
      MemorySegment out,
      long outAt,
      MemorySegment sums) {
    int headDim = shape.headDim();
    int firstKey = shape.firstKey(position);
    MemorySegment sinks = shape.sinks();
    double sink = sinks == null ? Double.NEGATIVE_INFINITY : sinks.getAtIndex(JAVA_FLOAT, head);
    double max = sink;
    for (int key = firstKey; key <= position; key++) {
      max = Math.max(max, score(shape, cache, batch, sequence, kvHead, key, q, qAt));
    }
    for (int d = 0; d < headDim; d++) {
      sums.setAtIndex(JAVA_DOUBLE, d, 0);
    }
    double total = sinks == null ? 0 : Math.exp(sink - max);
    for (int key = firstKey; key <= position; key++) {
      double weight = Math.exp(score(shape, cache, batch, sequence, kvHead, key, q, qAt) - max);
      total += weight;
      int block = batch.block(sequence, key / KvCacheLayer.BLOCK_TOKENS);
      long panel = cache.headOffset(block, kvHead);
      for (int d = 0; d < headDim; d++) {
        double value = cache.value(panel, key % KvCacheLayer.BLOCK_TOKENS, d);
        sums.setAtIndex(JAVA_DOUBLE, d, sums.getAtIndex(JAVA_DOUBLE, d) + weight * value);
      }
    }
    for (int d = 0; d < headDim; d++) {
      out.setAtIndex(JAVA_FLOAT, outAt + d, (float) (sums.getAtIndex(JAVA_DOUBLE, d) / total));
    }
  }

  private static double score(
      AttentionShape shape,
      KvCacheLayer cache,
      AttentionBatch batch,
      int sequence,
      int kvHead,
      int key,
      MemorySegment q,
      long qAt) {
    int block = batch.block(sequence, key / KvCacheLayer.BLOCK_TOKENS);
    long panel = cache.headOffset(block, kvHead);
    double dot = 0;
    for (int d = 0; d < shape.headDim(); d++) {
      double element = cache.key(panel, key % KvCacheLayer.BLOCK_TOKENS, d);
      dot += element * q.getAtIndex(JAVA_FLOAT, qAt + d);
    }
    double score = dot * shape.scale();
    return shape.softcap() > 0 ? shape.softcap() * Math.tanh(score / shape.softcap()) : score;
  }
}
