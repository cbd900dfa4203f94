package dev.tacho.engine.kernel;

import java.lang.foreign.MemorySegment;

/**
 * Rows of activations in the form that one provider's matmuls read; other providers cannot read INT8 and BFLOAT16 rows.
 * A view: the memory belongs to who made it.
 *
 * @param format form of the elements
 * @param k elements of a row, whole blocks of the format
 * @param rowBytes distance of two rows in bytes, at least {@link Kernels#activationRowBytes}
 * @param data off-heap, [rows][rowBytes]
 */
public record ActivationRows(ActivationFormat format, int k, long rowBytes, MemorySegment data) {
  /** Plain floats, {@code ld} elements from row to row. */
  public static ActivationRows floats(MemorySegment data, int ld, int k) {
    return new ActivationRows(ActivationFormat.FLOAT32, k, (long) ld * Float.BYTES, data);
  }
}
