package dev.tacho.engine.kernel.vector;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.AttentionBatch;
import java.lang.foreign.MemorySegment;

/**
 * What one row (a query with one of its heads) has gathered of some keys: the weighted values, the highest score and
 * the sum of exp(score - highest). Rows lie in a worker's scratch or in the partials of a batch, in the batch's layout.
 * Stateless.
 *
 * <pre>
 *   | values [headDim rounded up to 16] | highest | sum | unused, 14 |      floats
 * </pre>
 */
final class AttentionRow {
  private AttentionRow() {}

  static long bytes(int headDim) {
    return (long) AttentionBatch.partialFloats(headDim) * Float.BYTES;
  }

  private static long highestAt(int headDim) {
    return bytes(headDim) - 16L * Float.BYTES;
  }

  private static long sumAt(int headDim) {
    return highestAt(headDim) + Float.BYTES;
  }

  static float highest(int headDim, MemorySegment segment, long row) {
    return segment.get(JAVA_FLOAT, row + highestAt(headDim));
  }

  static float sum(int headDim, MemorySegment segment, long row) {
    return segment.get(JAVA_FLOAT, row + sumAt(headDim));
  }

  /** Writes a row whose values lie at {@code values} of the same segment as floats. */
  static void set(
      int headDim, MemorySegment from, long values, float highest, float sum, MemorySegment to, long row) {
    MemorySegment.copy(from, values, to, row, (long) headDim * Float.BYTES);
    to.set(JAVA_FLOAT, row + highestAt(headDim), highest);
    to.set(JAVA_FLOAT, row + sumAt(headDim), sum);
  }

  static void copy(int headDim, MemorySegment from, long source, MemorySegment to, long row) {
    MemorySegment.copy(from, source, to, row, bytes(headDim));
  }

  /** Adds one row to another; scores of -infinity alone leave a sum of 0. */
  static void merge(int headDim, MemorySegment from, long source, MemorySegment to, long row) {
    float mine = highest(headDim, to, row);
    float its = highest(headDim, from, source);
    float highest = Math.max(mine, its);
    float origin = highest == Float.NEGATIVE_INFINITY ? 0 : highest;
    float keep = (float) Math.exp(mine - origin);
    float add = (float) Math.exp(its - origin);
    for (int d = 0; d < headDim; d++) {
      long at = 4L * d;
      float value = to.get(JAVA_FLOAT, row + at) * keep + from.get(JAVA_FLOAT, source + at) * add;
      to.set(JAVA_FLOAT, row + at, value);
    }
    float sum = sum(headDim, to, row) * keep + sum(headDim, from, source) * add;
    to.set(JAVA_FLOAT, row + highestAt(headDim), highest);
    to.set(JAVA_FLOAT, row + sumAt(headDim), sum);
  }
}
