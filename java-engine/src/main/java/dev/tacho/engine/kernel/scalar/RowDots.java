package dev.tacho.engine.kernel.scalar;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.Int8Quantizer;
import dev.tacho.engine.kernel.KQuants;
import java.lang.foreign.MemorySegment;

/**
 * Dot products of one weight row in file layout with one row of activations, floats or, for the quantised types, INT8;
 * one method a type so that the choice of the type stays out of the inner loop. Codes are multiplied and summed as
 * integers, blocks and floats as doubles in ascending order. Stateless.
 */
final class RowDots {
  private static final int BLOCK = Int8Quantizer.BLOCK;
  private static final int HALF = BLOCK / 2;
  private static final int SUB_BLOCKS = KQuants.BLOCK / BLOCK;

  private RowDots() {}

  /** Sum of k products; {@code row} and {@code xRow} are byte offsets of the two rows. */
  static double dot(DType dtype, MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    return switch (dtype) {
      case F32 -> f32(weight, row, x, xRow, k);
      case F16 -> f16(weight, row, x, xRow, k);
      case BF16 -> bf16(weight, row, x, xRow, k);
      case Q8_0 -> q8(weight, row, x, xRow, k);
      case Q4_0 -> q4(weight, row, x, xRow, k);
      case Q4_K -> q4k(weight, row, x, xRow, k);
      case Q6_K -> q6k(weight, row, x, xRow, k);
    };
  }

  private static float x(MemorySegment x, long xRow, int j) {
    return x.get(JAVA_FLOAT_UNALIGNED, xRow + (long) j * Float.BYTES);
  }

  private static double f32(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int j = 0; j < k; j++) {
      sum += (double) Elements.f32(weight, row + 4L * j) * x(x, xRow, j);
    }
    return sum;
  }

  private static double f16(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int j = 0; j < k; j++) {
      sum += (double) Elements.f16(weight, row + 2L * j) * x(x, xRow, j);
    }
    return sum;
  }

  private static double bf16(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int j = 0; j < k; j++) {
      sum += (double) Elements.bf16(weight, row + 2L * j) * x(x, xRow, j);
    }
    return sum;
  }

  private static double q8(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int b = 0; b < k / BLOCK; b++) {
      long block = row + (long) b * DType.Q8_0.blockBytes();
      long xBlock = xRow + (long) b * Int8Quantizer.BLOCK_BYTES;
      int products = 0;
      for (int j = 0; j < BLOCK; j++) {
        products += Elements.q8Code(weight, block, j) * Int8Quantizer.code(x, xBlock, j);
      }
      sum += (double) Elements.f16(weight, block) * Int8Quantizer.scale(x, xBlock) * products;
    }
    return sum;
  }

  private static double q4(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int b = 0; b < k / BLOCK; b++) {
      long block = row + (long) b * DType.Q4_0.blockBytes();
      long xBlock = xRow + (long) b * Int8Quantizer.BLOCK_BYTES;
      int products = 0;
      for (int j = 0; j < BLOCK; j++) {
        products += Elements.q4Code(weight, block, j) * Int8Quantizer.code(x, xBlock, j);
      }
      sum += (double) Elements.f16(weight, block) * Int8Quantizer.scale(x, xBlock) * products;
    }
    return sum;
  }

  private static double q4k(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int b = 0; b < k / BLOCK; b++) {
      long block = row + (long) (b / SUB_BLOCKS) * DType.Q4_K.blockBytes();
      long xBlock = xRow + (long) b * Int8Quantizer.BLOCK_BYTES;
      int sub = b % SUB_BLOCKS;
      int products = 0;
      int codes = 0;
      for (int j = 0; j < BLOCK; j++) {
        int code = Int8Quantizer.code(x, xBlock, j);
        products += KQuants.q4Code(weight, block, sub * BLOCK + j) * code;
        codes += code;
      }
      double scaled = (double) KQuants.q4Scale(weight, block, sub) * products;
      sum += (scaled - (double) KQuants.q4Min(weight, block, sub) * codes) * Int8Quantizer.scale(x, xBlock);
    }
    return sum;
  }

  private static double q6k(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int b = 0; b < k / BLOCK; b++) {
      long block = row + (long) (b / SUB_BLOCKS) * DType.Q6_K.blockBytes();
      long xBlock = xRow + (long) b * Int8Quantizer.BLOCK_BYTES;
      int first = b % SUB_BLOCKS * BLOCK;
      for (int half = 0; half < BLOCK; half += HALF) {
        int products = 0;
        for (int j = half; j < half + HALF; j++) {
          products += KQuants.q6Code(weight, block, first + j) * Int8Quantizer.code(x, xBlock, j);
        }
        double scale = KQuants.q6Scale(weight, block, (first + half) / HALF);
        sum += scale * products * Int8Quantizer.scale(x, xBlock);
      }
    }
    return sum;
  }
}
