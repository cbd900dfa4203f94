package dev.tacho.engine.kernel;

import java.lang.foreign.MemorySegment;

/**
 * A matrix [n][k] packed by one {@link Kernels} for its own use; no other provider can read {@code data}.
 *
 * @param dtype the type of the elements
 * @param n rows: outputs of a matmul, entries of an embedding table
 * @param k columns: inputs of a matmul
 * @param data off-heap, {@link Kernels#weightBytes} bytes, owned by the model's weights
 */
public record Weight(DType dtype, int n, int k, MemorySegment data) {}
