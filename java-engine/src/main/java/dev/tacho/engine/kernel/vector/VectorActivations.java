package dev.tacho.engine.kernel.vector;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.ActivationFormat;
import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.ArgumentChecks;
import dev.tacho.engine.kernel.Int8Quantizer;
import dev.tacho.engine.kernel.Kernels;
import java.lang.foreign.MemorySegment;

/**
 * Rows of activations as the vector kernels read them. They multiply floats, so a block of codes
 * has their values in that form too.
 *
 * <pre>
 *   INT8 block, 164 bytes   | int8 code [32] | f32 scale | f32 code * scale [32] |
 * </pre>
 *
 * <p>Stateless.
 */
final class VectorActivations {
  static final int BLOCK = Int8Quantizer.BLOCK;
  static final int VALUES_OFFSET = Int8Quantizer.BLOCK_BYTES;
  static final int BLOCK_BYTES = VALUES_OFFSET + BLOCK * Float.BYTES;

  private VectorActivations() {}

  static long rowBytes(ActivationFormat format, int k) {
    ArgumentChecks.activationShape(format, k);
    return switch (format) {
      case FLOAT32 -> (long) k * Float.BYTES;
      case INT8 -> (long) k / BLOCK * BLOCK_BYTES;
      case BFLOAT16 -> throw new IllegalArgumentException("the vector kernels multiply no " + format);
    };
  }

  static long rowBytes(ActivationRows rows) {
    return rowBytes(rows.format(), rows.k());
  }

  /** Writes a block of floats, {@code count} of them, into a row. */
  static void put(MemorySegment x, long xAt, ActivationRows rows, int row, int block, int count) {
    long start = row * rows.rowBytes();
    if (rows.format() == ActivationFormat.INT8) {
      quantize(x, xAt, rows.data(), start + (long) block * BLOCK_BYTES);
    } else {
      long to = start + (long) block * Kernels.ACTIVATION_BLOCK * Float.BYTES;
      MemorySegment.copy(x, xAt, rows.data(), to, (long) count * Float.BYTES);
    }
  }

  private static void quantize(MemorySegment x, long xAt, MemorySegment block, long at) {
    Int8Quantizer.quantize(x, xAt, block, at);
    float scale = Int8Quantizer.scale(block, at);
    for (int i = 0; i < BLOCK; i++) {
      float value = Int8Quantizer.code(block, at, i) * scale;
      block.set(JAVA_FLOAT, at + VALUES_OFFSET + (long) i * Float.BYTES, value);
    }
  }
}
