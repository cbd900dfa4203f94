package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.FLOATS;
import static dev.tacho.engine.kernel.vector.Lanes.ORDER;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;
import static jdk.incubator.vector.VectorOperators.ASHR;
import static jdk.incubator.vector.VectorOperators.I2F;
import static jdk.incubator.vector.VectorOperators.LSHL;
import static jdk.incubator.vector.VectorOperators.LSHR;

import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import org.jspecify.annotations.Nullable;

/**
 * Matmul of one panel of a quantised type. One row alone multiplies codes in registers, as they come from memory. For
 * more rows, the values of a run of 256 k are written into the worker's scratch, where they stay in the L1 cache while
 * all rows of a block of rows pass in tiles of four.
 *
 * <p>An output is the sum of its runs in order; a run is one chain over its even k and one over its odd k. Weights have
 * the same value, to the bit, in registers and in scratch. So a row's bits do not depend on its batch.
 *
 * <pre>
 *   scratch   | sums [64 rows][16] 4 KiB | values [256][16] 16 KiB |
 * </pre>
 */
final class VectorInt8Matmul {
  private static final int RUN = 256;
  private static final int TILE_ROWS = 4;
  private static final int BLOCK = VectorActivations.BLOCK;
  private static final long X_BYTES = VectorActivations.BLOCK_BYTES;
  private static final long STEP = VectorWeights.STEP_BYTES;
  private static final long VALUES_AT = VectorMatmul.BLOCK_ROWS * STEP;

  /** Bytes of scratch in use, below the least that a worker has. */
  static final long SCRATCH_BYTES = VALUES_AT + RUN * STEP;

  private VectorInt8Matmul() {}

  static void panel(
      Weight w,
      int panel,
      @Nullable MemorySegment bias,
      ActivationRows x,
      int m,
      MemorySegment y,
      int ldy,
      boolean accumulate,
      MemorySegment scratch) {
    long start = panel * VectorWeights.panelBytes(w.dtype(), w.k());
    for (int row = 0; row < m; row += VectorMatmul.BLOCK_ROWS) {
      int rows = Math.min(VectorMatmul.BLOCK_ROWS, m - row);
      VectorMatmul.clear(scratch, rows);
      for (int from = 0; from < w.k(); from += RUN) {
        int to = Math.min(from + RUN, w.k());
        long xAt = row * x.rowBytes() + from / BLOCK * X_BYTES + VectorActivations.VALUES_OFFSET;
        if (rows == 1 && VectorWeights.unitElements(w.dtype()) == BLOCK) {
          codes(w, start, from, to, x.data(), xAt, scratch);
        } else {
          VectorWeights.unpack(w.dtype(), w.data(), start, from, to, scratch, VALUES_AT);
          values(scratch, (to - from) / BLOCK, x, xAt, rows);
        }
      }
      VectorMatmul.store(scratch, rows, bias, panel, w.n(), y, (long) row * ldy, ldy, accumulate);
    }
  }

  /** sums += x * panel run for one row, from the codes. */
  private static void codes(
      Weight w, long panel, int from, int to, MemorySegment x, long xAt, MemorySegment sums) {
    DType dtype = w.dtype();
    long head = VectorWeights.head(dtype, panel, from);
    int units = (to - from) / BLOCK;
    for (int lane = 0; lane < VectorWeights.PANEL_ROWS; lane += Lanes.COUNT) {
      long at = (long) lane * Float.BYTES;
      if (dtype == DType.Q8_0) {
        bytes(w.data(), head + at, units, x, xAt, sums, at);
      } else {
        nibbles(w.data(), head + at, units, VectorWeights.offsetAt(dtype), VectorWeights.offsetFactor(dtype), x, xAt,
            sums, at);
      }
    }
  }

  private static void bytes(
      MemorySegment w, long head, int units, MemorySegment x, long xAt, MemorySegment sums, long sumAt) {
    FloatVector even = FloatVector.zero(FLOATS);
    FloatVector odd = FloatVector.zero(FLOATS);
    for (int unit = 0; unit < units; unit++) {
      long unitAt = head + unit * VectorWeights.BYTES_UNIT;
      long valueAt = xAt + unit * X_BYTES;
      FloatVector scale = fromMemorySegment(FLOATS, w, unitAt, ORDER);
      for (int j = 0; j < BLOCK; j += 4) {
        IntVector words = IntVector.fromMemorySegment(Lanes.INTS, w, unitAt + STEP + j / 4 * STEP, ORDER);
        long at = valueAt + 4L * j;
        FloatVector w0 = (FloatVector) words.lanewise(LSHL, 24).lanewise(ASHR, 24).convert(I2F, 0);
        FloatVector w1 = (FloatVector) words.lanewise(LSHL, 16).lanewise(ASHR, 24).convert(I2F, 0);
        FloatVector w2 = (FloatVector) words.lanewise(LSHL, 8).lanewise(ASHR, 24).convert(I2F, 0);
        FloatVector w3 = (FloatVector) words.lanewise(ASHR, 24).convert(I2F, 0);
        even = w0.mul(scale).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at)), even);
        odd = w1.mul(scale).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 4)), odd);
        even = w2.mul(scale).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 8)), even);
        odd = w3.mul(scale).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 12)), odd);
      }
    }
    FloatVector sum = fromMemorySegment(FLOATS, sums, sumAt, ORDER);
    sum.add(even.add(odd)).intoMemorySegment(sums, sumAt, ORDER);
  }

  private static void nibbles(
      MemorySegment w,
      long head,
      int units,
      int offsetAt,
      float factor,
      MemorySegment x,
      long xAt,
      MemorySegment sums,
      long sumAt) {
    FloatVector even = FloatVector.zero(FLOATS);
    FloatVector odd = FloatVector.zero(FLOATS);
    for (int unit = 0; unit < units; unit++) {
      long unitAt = head + unit * (offsetAt + VectorWeights.NIBBLES_UNIT);
      long valueAt = xAt + unit * X_BYTES;
      FloatVector scale = fromMemorySegment(FLOATS, w, unitAt, ORDER);
      FloatVector offset = fromMemorySegment(FLOATS, w, unitAt + offsetAt, ORDER).mul(factor);
      for (int j = 0; j < BLOCK; j += 8) {
        long from = unitAt + offsetAt + STEP + j / 8 * STEP;
        IntVector words = IntVector.fromMemorySegment(Lanes.INTS, w, from, ORDER);
        long at = valueAt + 4L * j;
        FloatVector w0 = (FloatVector) words.and(15).convert(I2F, 0);
        FloatVector w1 = (FloatVector) words.lanewise(LSHR, 4).and(15).convert(I2F, 0);
        FloatVector w2 = (FloatVector) words.lanewise(LSHR, 8).and(15).convert(I2F, 0);
        FloatVector w3 = (FloatVector) words.lanewise(LSHR, 12).and(15).convert(I2F, 0);
        FloatVector w4 = (FloatVector) words.lanewise(LSHR, 16).and(15).convert(I2F, 0);
        FloatVector w5 = (FloatVector) words.lanewise(LSHR, 20).and(15).convert(I2F, 0);
        FloatVector w6 = (FloatVector) words.lanewise(LSHR, 24).and(15).convert(I2F, 0);
        FloatVector w7 = (FloatVector) words.lanewise(LSHR, 28).convert(I2F, 0);
        even = w0.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at)), even);
        odd = w1.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 4)), odd);
        even = w2.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 8)), even);
        odd = w3.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 12)), odd);
        even = w4.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 16)), even);
        odd = w5.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 20)), odd);
        even = w6.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 24)), even);
        odd = w7.fma(scale, offset).fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, at + 28)), odd);
      }
    }
    FloatVector sum = fromMemorySegment(FLOATS, sums, sumAt, ORDER);
    sum.add(even.add(odd)).intoMemorySegment(sums, sumAt, ORDER);
  }

  /** sums += x * panel run for each row of a block of rows, from the values in scratch. */
  private static void values(MemorySegment scratch, int blocks, ActivationRows x, long xAt, int rows) {
    for (int lane = 0; lane < VectorWeights.PANEL_ROWS; lane += Lanes.COUNT) {
      long column = (long) lane * Float.BYTES;
      int row = 0;
      for (; row + TILE_ROWS <= rows; row += TILE_ROWS) {
        long at = xAt + row * x.rowBytes();
        fourRows(scratch, VALUES_AT + column, blocks, x.data(), at, x.rowBytes(), row * STEP + column);
      }
      for (; row < rows; row++) {
        long at = xAt + row * x.rowBytes();
        oneRow(scratch, VALUES_AT + column, blocks, x.data(), at, row * STEP + column);
      }
    }
  }

  private static void oneRow(
      MemorySegment scratch, long values, int blocks, MemorySegment x, long xAt, long sumAt) {
    FloatVector even = FloatVector.zero(FLOATS);
    FloatVector odd = FloatVector.zero(FLOATS);
    for (int block = 0; block < blocks; block++) {
      long from = values + block * (BLOCK * STEP);
      long start = xAt + block * X_BYTES;
      for (int j = 0; j < BLOCK; j += 2) {
        FloatVector first = fromMemorySegment(FLOATS, scratch, from + j * STEP, ORDER);
        FloatVector next = fromMemorySegment(FLOATS, scratch, from + j * STEP + STEP, ORDER);
        even = first.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, start + 4L * j)), even);
        odd = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, start + 4L * j + 4)), odd);
      }
    }
    FloatVector sum = fromMemorySegment(FLOATS, scratch, sumAt, ORDER);
    sum.add(even.add(odd)).intoMemorySegment(scratch, sumAt, ORDER);
  }

  private static void fourRows(
      MemorySegment scratch, long values, int blocks, MemorySegment x, long xAt, long rowBytes, long sumAt) {
    FloatVector even0 = FloatVector.zero(FLOATS);
    FloatVector even1 = FloatVector.zero(FLOATS);
    FloatVector even2 = FloatVector.zero(FLOATS);
    FloatVector even3 = FloatVector.zero(FLOATS);
    FloatVector odd0 = FloatVector.zero(FLOATS);
    FloatVector odd1 = FloatVector.zero(FLOATS);
    FloatVector odd2 = FloatVector.zero(FLOATS);
    FloatVector odd3 = FloatVector.zero(FLOATS);
    for (int block = 0; block < blocks; block++) {
      long from = values + block * (BLOCK * STEP);
      long x0 = xAt + block * X_BYTES;
      long x1 = x0 + rowBytes;
      long x2 = x1 + rowBytes;
      long x3 = x2 + rowBytes;
      for (int j = 0; j < BLOCK; j += 2) {
        long at = 4L * j;
        FloatVector first = fromMemorySegment(FLOATS, scratch, from + j * STEP, ORDER);
        even0 = first.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x0 + at)), even0);
        even1 = first.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x1 + at)), even1);
        even2 = first.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x2 + at)), even2);
        even3 = first.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x3 + at)), even3);
        FloatVector next = fromMemorySegment(FLOATS, scratch, from + j * STEP + STEP, ORDER);
        odd0 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x0 + at + 4)), odd0);
        odd1 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x1 + at + 4)), odd1);
        odd2 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x2 + at + 4)), odd2);
        odd3 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x3 + at + 4)), odd3);
      }
    }
    FloatVector sum0 = fromMemorySegment(FLOATS, scratch, sumAt, ORDER);
    FloatVector sum1 = fromMemorySegment(FLOATS, scratch, sumAt + STEP, ORDER);
    FloatVector sum2 = fromMemorySegment(FLOATS, scratch, sumAt + 2 * STEP, ORDER);
    FloatVector sum3 = fromMemorySegment(FLOATS, scratch, sumAt + 3 * STEP, ORDER);
    sum0.add(even0.add(odd0)).intoMemorySegment(scratch, sumAt, ORDER);
    sum1.add(even1.add(odd1)).intoMemorySegment(scratch, sumAt + STEP, ORDER);
    sum2.add(even2.add(odd2)).intoMemorySegment(scratch, sumAt + 2 * STEP, ORDER);
    sum3.add(even3.add(odd3)).intoMemorySegment(scratch, sumAt + 3 * STEP, ORDER);
  }
}
