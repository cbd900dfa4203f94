package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.FLOATS;
import static dev.tacho.engine.kernel.vector.Lanes.ORDER;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import org.jspecify.annotations.Nullable;

/**
 * Matmul of one panel of floats. Runs of 256 k are turned into floats in the worker's scratch, where they stay in the
 * L1 cache while all rows of a block pass in tiles of four; F32 panels are read as they lie.
 *
 * <p>An output is the sum of its runs in order; a run is one chain over its even k and one over its odd k. Neither the
 * number of rows nor the tile changes that, so a row's bits do not depend on its batch.
 *
 * <pre>
 *   scratch   | sums [64 rows][16] 4 KiB | panel run [256][16] 16 KiB | products of a tile |
 * </pre>
 */
final class VectorMatmul {
  private static final int RUN = 256;
  static final int BLOCK_ROWS = 64;
  private static final int TILE_ROWS = 4;
  private static final long SUMS_BYTES = (long) BLOCK_ROWS * VectorWeights.STEP_BYTES;

  private static final long PRODUCTS_AT = SUMS_BYTES + (long) RUN * VectorWeights.STEP_BYTES;

  /** Bytes of scratch in use, below the least that a worker has. */
  static final long SCRATCH_BYTES = PRODUCTS_AT + (long) TILE_ROWS * VectorWeights.STEP_BYTES;

  private VectorMatmul() {}

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
    for (int row = 0; row < m; row += BLOCK_ROWS) {
      int rows = Math.min(BLOCK_ROWS, m - row);
      clear(scratch, 0, rows);
      for (int from = 0; from < w.k(); from += RUN) {
        int to = Math.min(from + RUN, w.k());
        long xAt = row * x.rowBytes() + (long) from * Float.BYTES;
        if (w.dtype() == DType.F32) {
          rows(w.data(), start + (long) from * VectorWeights.STEP_BYTES, to - from, x, xAt, rows, scratch);
        } else {
          VectorWeights.unpack(w.dtype(), w.data(), start, from, to, scratch, SUMS_BYTES);
          rows(scratch, SUMS_BYTES, to - from, x, xAt, rows, scratch);
        }
      }
      store(scratch, 0, rows, bias, panel, w.n(), y, (long) row * ldy, ldy, accumulate);
    }
  }

  static void clear(MemorySegment sums, long sumsAt, int rows) {
    FloatVector zero = FloatVector.zero(FLOATS);
    for (int i = 0; i < rows * VectorWeights.PANEL_ROWS; i += Lanes.COUNT) {
      zero.intoMemorySegment(sums, sumsAt + 4L * i, ORDER);
    }
  }

  /** sums += x * panel run, for each row of a block. */
  private static void rows(
      MemorySegment w, long wAt, int steps, ActivationRows activations, long xAt, int rows, MemorySegment sums) {
    MemorySegment x = activations.data();
    long rowBytes = activations.rowBytes();
    int row = 0;
    for (; row + TILE_ROWS <= rows; row += TILE_ROWS) {
      for (int lane = 0; lane < VectorWeights.PANEL_ROWS; lane += Lanes.COUNT) {
        long at = (long) lane * Float.BYTES;
        fourRows(
            w, wAt + at, steps, x, xAt + row * rowBytes, rowBytes, sums, (long) row * VectorWeights.STEP_BYTES + at);
      }
    }
    for (; row < rows; row++) {
      for (int lane = 0; lane < VectorWeights.PANEL_ROWS; lane += Lanes.COUNT) {
        long at = (long) lane * Float.BYTES;
        oneRow(w, wAt + at, steps, x, xAt + row * rowBytes, sums, (long) row * VectorWeights.STEP_BYTES + at);
      }
    }
  }

  private static void oneRow(
      MemorySegment w, long wAt, int steps, MemorySegment x, long xAt, MemorySegment sums, long sumAt) {
    FloatVector even = FloatVector.zero(FLOATS);
    FloatVector odd = FloatVector.zero(FLOATS);
    int pairs = steps / 2 * 2;
    for (int k = 0; k < pairs; k += 2) {
      long at = wAt + (long) k * VectorWeights.STEP_BYTES;
      FloatVector weight = fromMemorySegment(FLOATS, w, at, ORDER);
      even = weight.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, xAt + 4L * k)), even);
      FloatVector next = fromMemorySegment(FLOATS, w, at + VectorWeights.STEP_BYTES, ORDER);
      odd = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, xAt + 4L * k + 4)), odd);
    }
    FloatVector sum = fromMemorySegment(FLOATS, sums, sumAt, ORDER);
    sum.add(even.add(odd)).intoMemorySegment(sums, sumAt, ORDER);
    if (pairs < steps) {
      lastStep(w, wAt + (long) pairs * VectorWeights.STEP_BYTES, x, xAt + 4L * pairs, sums, sumAt);
    }
  }

  /** The step without a pair of an odd k. */
  private static void lastStep(MemorySegment w, long wAt, MemorySegment x, long xAt, MemorySegment sums, long sumAt) {
    FloatVector weight = fromMemorySegment(FLOATS, w, wAt, ORDER);
    FloatVector sum = fromMemorySegment(FLOATS, sums, sumAt, ORDER);
    weight.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, xAt)), sum).intoMemorySegment(sums, sumAt, ORDER);
  }

  private static void fourRows(
      MemorySegment w,
      long wAt,
      int steps,
      MemorySegment x,
      long x0,
      long rowBytes,
      MemorySegment sums,
      long sumAt) {
    long x1 = x0 + rowBytes;
    long x2 = x1 + rowBytes;
    long x3 = x2 + rowBytes;
    FloatVector even0 = FloatVector.zero(FLOATS);
    FloatVector even1 = FloatVector.zero(FLOATS);
    FloatVector even2 = FloatVector.zero(FLOATS);
    FloatVector even3 = FloatVector.zero(FLOATS);
    FloatVector odd0 = FloatVector.zero(FLOATS);
    FloatVector odd1 = FloatVector.zero(FLOATS);
    FloatVector odd2 = FloatVector.zero(FLOATS);
    FloatVector odd3 = FloatVector.zero(FLOATS);
    int pairs = steps / 2 * 2;
    for (int k = 0; k < pairs; k += 2) {
      long at = 4L * k;
      FloatVector weight = fromMemorySegment(FLOATS, w, wAt + (long) k * VectorWeights.STEP_BYTES, ORDER);
      even0 = weight.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x0 + at)), even0);
      even1 = weight.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x1 + at)), even1);
      even2 = weight.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x2 + at)), even2);
      even3 = weight.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x3 + at)), even3);
      FloatVector next = fromMemorySegment(FLOATS, w, wAt + (k + 1L) * VectorWeights.STEP_BYTES, ORDER);
      odd0 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x0 + at + 4)), odd0);
      odd1 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x1 + at + 4)), odd1);
      odd2 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x2 + at + 4)), odd2);
      odd3 = next.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x3 + at + 4)), odd3);
    }
    even0.add(odd0).intoMemorySegment(sums, PRODUCTS_AT, ORDER);
    even1.add(odd1).intoMemorySegment(sums, PRODUCTS_AT + Lanes.BYTES, ORDER);
    even2.add(odd2).intoMemorySegment(sums, PRODUCTS_AT + 2L * Lanes.BYTES, ORDER);
    even3.add(odd3).intoMemorySegment(sums, PRODUCTS_AT + 3L * Lanes.BYTES, ORDER);
    for (int row = 0; row < TILE_ROWS; row++) {
      long at = sumAt + (long) row * VectorWeights.STEP_BYTES;
      addProducts(sums, PRODUCTS_AT + (long) row * Lanes.BYTES, at);
      if (pairs < steps) {
        lastStep(w, wAt + (long) pairs * VectorWeights.STEP_BYTES, x, x0 + row * rowBytes + 4L * pairs, sums, at);
      }
    }
  }

  private static void addProducts(MemorySegment sums, long products, long sumAt) {
    FloatVector sum = fromMemorySegment(FLOATS, sums, sumAt, ORDER);
    sum.add(fromMemorySegment(FLOATS, sums, products, ORDER)).intoMemorySegment(sums, sumAt, ORDER);
  }

  /** y = sums + bias (+ y), the columns that exist. */
  static void store(
      MemorySegment sums,
      long sumsAt,
      int rows,
      @Nullable MemorySegment bias,
      int panel,
      int n,
      MemorySegment y,
      long yRow,
      int ldy,
      boolean accumulate) {
    int first = panel * VectorWeights.PANEL_ROWS;
    int columns = Math.min(VectorWeights.PANEL_ROWS, n - first);
    for (int row = 0; row < rows; row++) {
      for (int c = 0; c < columns; c++) {
        float sum = sums.get(JAVA_FLOAT, sumsAt + (long) row * VectorWeights.STEP_BYTES + 4L * c);
        float value = bias == null ? sum : sum + bias.getAtIndex(JAVA_FLOAT, first + c);
        long at = yRow + (long) row * ldy + first + c;
        y.setAtIndex(JAVA_FLOAT, at, accumulate ? y.getAtIndex(JAVA_FLOAT, at) + value : value);
      }
    }
  }
}
