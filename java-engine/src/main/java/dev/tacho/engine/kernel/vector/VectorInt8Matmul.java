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
 * Matmul of one or two panels of a quantised type. One row alone multiplies codes in registers, as they come from
 * memory. For more rows, the values of a run of 256 k are written into the worker's scratch, where they stay in the
 * nearest caches while all rows of a block of rows pass in tiles of four. Two panels share the loads of activations.
 *
 * <p>An output is the sum of its runs in order; a run is one chain over its even k and one over its odd k. Weights have
 * the same value, to the bit, in registers and in scratch. So a row's bits do not depend on its batch.
 *
 * <pre>
 *   scratch   sums [panel][64 rows][16], 4 KiB a panel | values [panel][256 k][16], 16 KiB a panel | products of a tile
 * </pre>
 */
final class VectorInt8Matmul {
  private static final int RUN = 256;
  private static final int TILE_ROWS = 4;
  private static final int BLOCK = VectorActivations.BLOCK;
  private static final long X_BYTES = VectorActivations.BLOCK_BYTES;
  private static final long STEP = VectorWeights.STEP_BYTES;
  private static final long SUMS_BYTES = VectorMatmul.BLOCK_ROWS * STEP;
  private static final long VALUES_BYTES = RUN * STEP;

  /** Panels at once: the sums of two fill more registers than there are of less than 512 bits. */
  static final int PANELS = Lanes.COUNT == VectorWeights.PANEL_ROWS ? 2 : 1;

  private static final long VALUES_AT = PANELS * SUMS_BYTES;
  private static final long PRODUCTS_AT = VALUES_AT + PANELS * VALUES_BYTES;

  /** Bytes of scratch in use, below the least that a worker has. */
  static final long SCRATCH_BYTES = PRODUCTS_AT + PANELS * (TILE_ROWS * STEP);

  private VectorInt8Matmul() {}

  /** Panels [first, first + panels) of a weight; at most {@link #PANELS} of them. */
  static void panels(
      Weight w,
      int first,
      int panels,
      @Nullable MemorySegment bias,
      ActivationRows x,
      int m,
      MemorySegment y,
      int ldy,
      boolean accumulate,
      MemorySegment scratch) {
    DType dtype = w.dtype();
    for (int row = 0; row < m; row += VectorMatmul.BLOCK_ROWS) {
      int rows = Math.min(VectorMatmul.BLOCK_ROWS, m - row);
      for (int i = 0; i < panels; i++) {
        VectorMatmul.clear(scratch, i * SUMS_BYTES, rows);
      }
      for (int from = 0; from < w.k(); from += RUN) {
        int to = Math.min(from + RUN, w.k());
        long xAt = row * x.rowBytes() + from / BLOCK * X_BYTES + VectorActivations.VALUES_OFFSET;
        if (rows == 1 && VectorWeights.unitElements(dtype) == BLOCK) {
          for (int i = 0; i < panels; i++) {
            codes(w, first + i, from, to, x.data(), xAt, scratch, i * SUMS_BYTES);
          }
        } else {
          for (int i = 0; i < panels; i++) {
            long start = (first + i) * VectorWeights.panelBytes(dtype, w.k());
            VectorWeights.unpack(dtype, w.data(), start, from, to, scratch, VALUES_AT + i * VALUES_BYTES);
          }
          values(scratch, panels, (to - from) / BLOCK, x, xAt, rows);
        }
      }
      for (int i = 0; i < panels; i++) {
        long yAt = (long) row * ldy;
        VectorMatmul.store(scratch, i * SUMS_BYTES, rows, bias, first + i, w.n(), y, yAt, ldy, accumulate);
      }
    }
  }

  /** sums += x * panel run for one row, from the codes. */
  private static void codes(
      Weight w, int panel, int from, int to, MemorySegment x, long xAt, MemorySegment sums, long sumsAt) {
    DType dtype = w.dtype();
    long head = VectorWeights.head(dtype, panel * VectorWeights.panelBytes(dtype, w.k()), from);
    int units = (to - from) / BLOCK;
    for (int lane = 0; lane < VectorWeights.PANEL_ROWS; lane += Lanes.COUNT) {
      long at = (long) lane * Float.BYTES;
      long headAt = head + at;
      if (dtype == DType.Q8_0) {
        bytes(w.data(), headAt, units, x, xAt, sums, sumsAt + at);
      } else {
        int offsetAt = VectorWeights.offsetAt(dtype);
        float factor = VectorWeights.offsetFactor(dtype);
        nibbles(w.data(), headAt, units, offsetAt, factor, x, xAt, sums, sumsAt + at);
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

  /** sums += x * panel runs for each row of a block of rows, from the values in scratch. */
  private static void values(MemorySegment scratch, int panels, int blocks, ActivationRows x, long xAt, int rows) {
    long rowBytes = x.rowBytes();
    int tiled = rows / TILE_ROWS * TILE_ROWS;
    for (int row = 0; panels == 2 && row < tiled; row += TILE_ROWS) {
      fourRowsOfTwo(scratch, blocks, x.data(), xAt + row * rowBytes, rowBytes, row * STEP);
    }
    for (int i = 0; i < panels; i++) {
      for (int lane = 0; lane < VectorWeights.PANEL_ROWS; lane += Lanes.COUNT) {
        long values = VALUES_AT + i * VALUES_BYTES + (long) lane * Float.BYTES;
        long sums = i * SUMS_BYTES + (long) lane * Float.BYTES;
        for (int row = 0; panels == 1 && row < tiled; row += TILE_ROWS) {
          fourRows(scratch, values, blocks, x.data(), xAt + row * rowBytes, rowBytes, sums + row * STEP);
        }
        for (int row = tiled; row < rows; row++) {
          oneRow(scratch, values, blocks, x.data(), xAt + row * rowBytes, sums + row * STEP);
        }
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

  /** As {@link #fourRows}, of two panels. */
  private static void fourRowsOfTwo(
      MemorySegment scratch, int blocks, MemorySegment x, long xAt, long rowBytes, long sumAt) {
    FloatVector evenA0 = FloatVector.zero(FLOATS);
    FloatVector oddA0 = FloatVector.zero(FLOATS);
    FloatVector evenA1 = FloatVector.zero(FLOATS);
    FloatVector oddA1 = FloatVector.zero(FLOATS);
    FloatVector evenA2 = FloatVector.zero(FLOATS);
    FloatVector oddA2 = FloatVector.zero(FLOATS);
    FloatVector evenA3 = FloatVector.zero(FLOATS);
    FloatVector oddA3 = FloatVector.zero(FLOATS);
    FloatVector evenB0 = FloatVector.zero(FLOATS);
    FloatVector oddB0 = FloatVector.zero(FLOATS);
    FloatVector evenB1 = FloatVector.zero(FLOATS);
    FloatVector oddB1 = FloatVector.zero(FLOATS);
    FloatVector evenB2 = FloatVector.zero(FLOATS);
    FloatVector oddB2 = FloatVector.zero(FLOATS);
    FloatVector evenB3 = FloatVector.zero(FLOATS);
    FloatVector oddB3 = FloatVector.zero(FLOATS);
    for (int block = 0; block < blocks; block++) {
      long from = VALUES_AT + block * (BLOCK * STEP);
      long x0 = xAt + block * X_BYTES;
      long x1 = x0 + rowBytes;
      long x2 = x1 + rowBytes;
      long x3 = x2 + rowBytes;
      for (int j = 0; j < BLOCK; j += 2) {
        long at = 4L * j;
        long step = from + j * STEP;
        FloatVector firstA = fromMemorySegment(FLOATS, scratch, step, ORDER);
        FloatVector firstB = fromMemorySegment(FLOATS, scratch, step + VALUES_BYTES, ORDER);
        FloatVector even0 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x0 + at));
        evenA0 = firstA.fma(even0, evenA0);
        evenB0 = firstB.fma(even0, evenB0);
        FloatVector even1 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x1 + at));
        evenA1 = firstA.fma(even1, evenA1);
        evenB1 = firstB.fma(even1, evenB1);
        FloatVector even2 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x2 + at));
        evenA2 = firstA.fma(even2, evenA2);
        evenB2 = firstB.fma(even2, evenB2);
        FloatVector even3 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x3 + at));
        evenA3 = firstA.fma(even3, evenA3);
        evenB3 = firstB.fma(even3, evenB3);
        FloatVector nextA = fromMemorySegment(FLOATS, scratch, step + STEP, ORDER);
        FloatVector nextB = fromMemorySegment(FLOATS, scratch, step + STEP + VALUES_BYTES, ORDER);
        FloatVector odd0 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x0 + at + 4));
        oddA0 = nextA.fma(odd0, oddA0);
        oddB0 = nextB.fma(odd0, oddB0);
        FloatVector odd1 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x1 + at + 4));
        oddA1 = nextA.fma(odd1, oddA1);
        oddB1 = nextB.fma(odd1, oddB1);
        FloatVector odd2 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x2 + at + 4));
        oddA2 = nextA.fma(odd2, oddA2);
        oddB2 = nextB.fma(odd2, oddB2);
        FloatVector odd3 = broadcast(FLOATS, x.get(JAVA_FLOAT_UNALIGNED, x3 + at + 4));
        oddA3 = nextA.fma(odd3, oddA3);
        oddB3 = nextB.fma(odd3, oddB3);
      }
    }
    evenA0.add(oddA0).intoMemorySegment(scratch, PRODUCTS_AT + 0 * STEP, ORDER);
    evenA1.add(oddA1).intoMemorySegment(scratch, PRODUCTS_AT + 1 * STEP, ORDER);
    evenA2.add(oddA2).intoMemorySegment(scratch, PRODUCTS_AT + 2 * STEP, ORDER);
    evenA3.add(oddA3).intoMemorySegment(scratch, PRODUCTS_AT + 3 * STEP, ORDER);
    evenB0.add(oddB0).intoMemorySegment(scratch, PRODUCTS_AT + 4 * STEP, ORDER);
    evenB1.add(oddB1).intoMemorySegment(scratch, PRODUCTS_AT + 5 * STEP, ORDER);
    evenB2.add(oddB2).intoMemorySegment(scratch, PRODUCTS_AT + 6 * STEP, ORDER);
    evenB3.add(oddB3).intoMemorySegment(scratch, PRODUCTS_AT + 7 * STEP, ORDER);
    for (int row = 0; row < TILE_ROWS; row++) {
      add(scratch, PRODUCTS_AT + row * STEP, sumAt + row * STEP);
      add(scratch, PRODUCTS_AT + (TILE_ROWS + row) * STEP, SUMS_BYTES + sumAt + row * STEP);
    }
  }

  private static void add(MemorySegment scratch, long products, long sumAt) {
    FloatVector sum = fromMemorySegment(FLOATS, scratch, sumAt, ORDER);
    sum.add(fromMemorySegment(FLOATS, scratch, products, ORDER)).intoMemorySegment(scratch, sumAt, ORDER);
  }
}
