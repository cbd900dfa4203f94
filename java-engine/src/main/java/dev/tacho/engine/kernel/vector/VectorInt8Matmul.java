package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.FLOATS;
import static dev.tacho.engine.kernel.vector.Lanes.ORDER;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import dev.tacho.engine.kernel.ActivationRows;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Int8Quantizer;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import org.jspecify.annotations.Nullable;

/**
 * Matmul of one panel of a quantised type. The codes of a run of 256 k become floats in the worker's scratch, where
 * they stay in the L1 cache while all rows of a block of rows pass. Products of codes are summed as floats within a
 * unit (32 k, 16 for Q6_K): whole numbers below 2^24, so exactly and in any order; the unit's sum is then scaled and
 * added to the output's, unit by unit in the order of k. A row's bits depend on itself alone.
 *
 * <pre>
 *   scratch   | sums [64 rows][16] 4 KiB | codes [256][16] 16 KiB | products [4 rows][16] |
 * </pre>
 */
final class VectorInt8Matmul {
  private static final int RUN = 256;
  private static final int TILE_ROWS = 4;
  private static final long CODES_AT = (long) VectorMatmul.BLOCK_ROWS * VectorWeights.STEP_BYTES;

  private static final long PRODUCTS_AT = CODES_AT + (long) RUN * VectorWeights.STEP_BYTES;

  /** Bytes of scratch in use, below the least that a worker has. */
  static final long SCRATCH_BYTES = PRODUCTS_AT + (long) TILE_ROWS * VectorWeights.STEP_BYTES;

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
        VectorWeights.unpackCodes(w.dtype(), w.data(), start, from, to, scratch, CODES_AT);
        run(w, start, from, to, x, row, rows, scratch);
      }
      VectorMatmul.store(scratch, rows, bias, panel, w.n(), y, (long) row * ldy, ldy, accumulate);
    }
  }

  private static void run(
      Weight w, long panel, int from, int to, ActivationRows x, int row, int rows, MemorySegment scratch) {
    int elements = VectorWeights.unitElements(w.dtype());
    boolean mins = w.dtype() == DType.Q4_K;
    for (int k = from; k < to; k += elements) {
      long codes = CODES_AT + (long) (k - from) * VectorWeights.STEP_BYTES;
      long head = VectorWeights.head(w.dtype(), panel, k);
      long block = row * x.rowBytes() + (long) (k / VectorActivations.BLOCK) * VectorActivations.BLOCK_BYTES;
      int first = k % VectorActivations.BLOCK;
      for (int lane = 0; lane < VectorWeights.PANEL_ROWS; lane += Lanes.COUNT) {
        long at = (long) lane * Float.BYTES;
        unit(w.data(), head + at, mins, scratch, codes + at, elements, x.data(), block, first, x.rowBytes(), rows, at);
      }
    }
  }

  /** One unit and as many outputs as a vector has lanes, all rows. */
  private static void unit(
      MemorySegment w,
      long head,
      boolean mins,
      MemorySegment scratch,
      long codes,
      int elements,
      MemorySegment x,
      long block,
      int first,
      long rowBytes,
      int rows,
      long sums) {
    long products = PRODUCTS_AT + sums;
    int row = 0;
    for (; row + TILE_ROWS <= rows; row += TILE_ROWS) {
      long at = block + row * rowBytes;
      fourRows(scratch, codes, elements, x, at, first, rowBytes, products);
      for (int i = 0; i < TILE_ROWS; i++) {
        add(w, head, mins, x, at + i * rowBytes, scratch, sumAt(products, i), sumAt(sums, row + i));
      }
    }
    for (; row < rows; row++) {
      long at = block + row * rowBytes;
      oneRow(scratch, codes, elements, x, at, first, products);
      add(w, head, mins, x, at, scratch, products, sumAt(sums, row));
    }
  }

  private static long sumAt(long sums, int row) {
    return sums + (long) row * VectorWeights.STEP_BYTES;
  }

  private static void oneRow(
      MemorySegment scratch, long codes, int elements, MemorySegment x, long block, int first, long products) {
    long xAt = block + VectorActivations.CODES_OFFSET + (long) first * Float.BYTES;
    FloatVector sum0 = FloatVector.zero(FLOATS);
    FloatVector sum1 = sum0;
    FloatVector sum2 = sum0;
    FloatVector sum3 = sum0;
    for (int j = 0; j < elements; j += 4) {
      long at = codes + (long) j * VectorWeights.STEP_BYTES;
      long value = xAt + (long) j * Float.BYTES;
      FloatVector code0 = fromMemorySegment(FLOATS, scratch, at, ORDER);
      FloatVector code1 = fromMemorySegment(FLOATS, scratch, at + VectorWeights.STEP_BYTES, ORDER);
      FloatVector code2 = fromMemorySegment(FLOATS, scratch, at + 2L * VectorWeights.STEP_BYTES, ORDER);
      FloatVector code3 = fromMemorySegment(FLOATS, scratch, at + 3L * VectorWeights.STEP_BYTES, ORDER);
      sum0 = code0.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, value)), sum0);
      sum1 = code1.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, value + 4)), sum1);
      sum2 = code2.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, value + 8)), sum2);
      sum3 = code3.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, value + 12)), sum3);
    }
    sum0.add(sum1).add(sum2.add(sum3)).intoMemorySegment(scratch, products, ORDER);
  }

  private static void fourRows(
      MemorySegment scratch,
      long codes,
      int elements,
      MemorySegment x,
      long block,
      int first,
      long rowBytes,
      long products) {
    long x0 = block + VectorActivations.CODES_OFFSET + (long) first * Float.BYTES;
    long x1 = x0 + rowBytes;
    long x2 = x1 + rowBytes;
    long x3 = x2 + rowBytes;
    FloatVector sum0 = FloatVector.zero(FLOATS);
    FloatVector sum1 = sum0;
    FloatVector sum2 = sum0;
    FloatVector sum3 = sum0;
    for (int j = 0; j < elements; j++) {
      FloatVector code = fromMemorySegment(FLOATS, scratch, codes + (long) j * VectorWeights.STEP_BYTES, ORDER);
      long at = (long) j * Float.BYTES;
      sum0 = code.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x0 + at)), sum0);
      sum1 = code.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x1 + at)), sum1);
      sum2 = code.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x2 + at)), sum2);
      sum3 = code.fma(broadcast(FLOATS, x.get(JAVA_FLOAT, x3 + at)), sum3);
    }
    sum0.intoMemorySegment(scratch, products, ORDER);
    sum1.intoMemorySegment(scratch, products + VectorWeights.STEP_BYTES, ORDER);
    sum2.intoMemorySegment(scratch, products + 2L * VectorWeights.STEP_BYTES, ORDER);
    sum3.intoMemorySegment(scratch, products + 3L * VectorWeights.STEP_BYTES, ORDER);
  }

  /** sums = sums - min * scaled sum of the activations + products * both scales. */
  private static void add(
      MemorySegment w,
      long head,
      boolean mins,
      MemorySegment x,
      long block,
      MemorySegment scratch,
      long products,
      long sumAt) {
    if (mins) {
      float scaledSum = x.get(JAVA_FLOAT, block + VectorActivations.SUM_OFFSET);
      addScaled(w, head + VectorWeights.STEP_BYTES, -scaledSum, scratch, sumAt);
    }
    float rowScale = x.get(JAVA_FLOAT, block + Int8Quantizer.SCALE_OFFSET);
    FloatVector scale = fromMemorySegment(FLOATS, w, head, ORDER).mul(rowScale);
    FloatVector sum = fromMemorySegment(FLOATS, scratch, sumAt, ORDER);
    fromMemorySegment(FLOATS, scratch, products, ORDER).fma(scale, sum).intoMemorySegment(scratch, sumAt, ORDER);
  }

  private static void addScaled(MemorySegment w, long at, float factor, MemorySegment sums, long sumAt) {
    FloatVector sum = fromMemorySegment(FLOATS, sums, sumAt, ORDER);
    FloatVector min = fromMemorySegment(FLOATS, w, at, ORDER);
    min.fma(broadcast(FLOATS, factor), sum).intoMemorySegment(sums, sumAt, ORDER);
  }
}
