package dev.tacho.engine.kernel.scalar;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import java.lang.foreign.MemorySegment;

/**
 * Dot products of one weight row in file layout with one row of floats, one method a type so that the choice of the
 * type stays out of the inner loop. Sums are doubles in ascending order. Stateless.
 */
final class RowDots {
  private static final int BLOCK = 32;

  private RowDots() {}

  /** Sum of k products; {@code row} is the weight row's byte offset, {@code xRow} the index of the first float. */
  static double dot(DType dtype, MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    return switch (dtype) {
      case F32 -> f32(weight, row, x, xRow, k);
      case F16 -> f16(weight, row, x, xRow, k);
      case BF16 -> bf16(weight, row, x, xRow, k);
      case Q8_0 -> q8(weight, row, x, xRow, k);
      case Q4_0 -> q4(weight, row, x, xRow, k);
    };
  }

  private static double f32(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int j = 0; j < k; j++) {
      sum += (double) Elements.f32(weight, row + 4L * j) * x.getAtIndex(JAVA_FLOAT, xRow + j);
    }
    return sum;
  }

  private static double f16(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int j = 0; j < k; j++) {
      sum += (double) Elements.f16(weight, row + 2L * j) * x.getAtIndex(JAVA_FLOAT, xRow + j);
    }
    return sum;
  }

  private static double bf16(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int j = 0; j < k; j++) {
      sum += (double) Elements.bf16(weight, row + 2L * j) * x.getAtIndex(JAVA_FLOAT, xRow + j);
    }
    return sum;
  }

  private static double q8(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int start = 0; start < k; start += BLOCK) {
      long block = row + (long) (start / BLOCK) * DType.Q8_0.blockBytes();
      double scale = Elements.f16(weight, block);
      for (int j = 0; j < BLOCK; j++) {
        sum += scale * Elements.q8Code(weight, block, j) * x.getAtIndex(JAVA_FLOAT, xRow + start + j);
      }
    }
    return sum;
  }

  private static double q4(MemorySegment weight, long row, MemorySegment x, long xRow, int k) {
    double sum = 0;
    for (int start = 0; start < k; start += BLOCK) {
      long block = row + (long) (start / BLOCK) * DType.Q4_0.blockBytes();
      double scale = Elements.f16(weight, block);
      for (int j = 0; j < BLOCK; j++) {
        sum += scale * Elements.q4Code(weight, block, j) * x.getAtIndex(JAVA_FLOAT, xRow + start + j);
      }
    }
    return sum;
  }
}
