package dev.tacho.engine.kernel.vector;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import org.jspecify.annotations.Nullable;

/**
 * Matmul of one panel. Runs of 256 k are turned into floats in the worker's scratch, where they stay in the L1 cache
 * while all rows of a block pass in tiles of four; F32 panels are read as they lie.
 *
 * <p>An output is the sum of its runs in order; a run is one chain over its even k and one over its odd k. Neither the
 * number of rows nor the tile changes that, so a row's bits do not depend on its batch.
 *
 * <pre>
 *   scratch   | sums [64 rows][16] 4 KiB | panel run [256][16] 16 KiB |
 * </pre>
 */
final class VectorMatmul {
  private static final int RUN = 256;
  private static final int BLOCK_ROWS = 64;
  private static final int TILE_ROWS = 4;
  private static final long SUMS_BYTES = (long) BLOCK_ROWS * VectorWeights.STEP_BYTES;

  /** Bytes of scratch in use, below the least that a worker has. */
  static final long SCRATCH_BYTES = SUMS_BYTES + (long) RUN * VectorWeights.STEP_BYTES;

  private VectorMatmul() {}

  static void panel(
      Weight w,
      int panel,
      @Nullable MemorySegment bias,
      MemorySegment x,
      int ldx,
      int m,
      MemorySegment y,
      int ldy,
      MemorySegment scratch) {
    long start = panel * VectorWeights.panelBytes(w.dtype(), w.k());
    for (int row = 0; row < m; row += BLOCK_ROWS) {
      int rows = Math.min(BLOCK_ROWS, m - row);
      clear(scratch, rows);
      for (int from = 0; from < w.k(); from += RUN) {
        int to = Math.min(from + RUN, w.k());
        long xAt = ((long) row * ldx + from) * Float.BYTES;
        if (w.dtype() == DType.F32) {
          rows(w.data(), start + (long) from * VectorWeights.STEP_BYTES, to - from, x, xAt, ldx, rows, scratch);
        } else {
          VectorWeights.unpack(w.dtype(), w.data(), start, from, to, scratch, SUMS_BYTES);
          rows(scratch, SUMS_BYTES, to - from, x, xAt, ldx, rows, scratch);
        }
      }
      store(scratch, rows, bias, panel, w.n(), y, (long) row * ldy, ldy);
    }
  }

  private static void clear(MemorySegment sums, int rows) {
    FloatVector zero = FloatVector.zero(Lanes.FLOATS);
    for (int i = 0; i < rows * VectorWeights.PANEL_ROWS; i += Lanes.COUNT) {
      zero.intoMemorySegment(sums, 4L * i, Lanes.ORDER);
    }
  }

  /** sums += x * panel run, for each row of a block. */
  private static void rows(
      MemorySegment w, long wAt, int steps, MemorySegment x, long xAt, int ldx, int rows, MemorySegment sums) {
    long rowBytes = (long) ldx * Float.BYTES;
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

  private static FloatVector broadcast(MemorySegment x, long at) {
    return FloatVector.broadcast(Lanes.FLOATS, x.get(JAVA_FLOAT, at));
  }

  private static void accumulate(MemorySegment sums, long at, FloatVector even, FloatVector odd) {
    Lanes.f32(sums, at).add(even.add(odd)).intoMemorySegment(sums, at, Lanes.ORDER);
  }

  private static void oneRow(
      MemorySegment w, long wAt, int steps, MemorySegment x, long xAt, MemorySegment sums, long sumAt) {
    FloatVector even = FloatVector.zero(Lanes.FLOATS);
    FloatVector odd = FloatVector.zero(Lanes.FLOATS);
    int k = 0;
    for (; k + 1 < steps; k += 2) {
      long at = wAt + (long) k * VectorWeights.STEP_BYTES;
      even = Lanes.f32(w, at).fma(broadcast(x, xAt + 4L * k), even);
      odd = Lanes.f32(w, at + VectorWeights.STEP_BYTES).fma(broadcast(x, xAt + 4L * k + 4), odd);
    }
    if (k < steps) {
      even = Lanes.f32(w, wAt + (long) k * VectorWeights.STEP_BYTES).fma(broadcast(x, xAt + 4L * k), even);
    }
    accumulate(sums, sumAt, even, odd);
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
    FloatVector even0 = FloatVector.zero(Lanes.FLOATS);
    FloatVector even1 = even0;
    FloatVector even2 = even0;
    FloatVector even3 = even0;
    FloatVector odd0 = even0;
    FloatVector odd1 = even0;
    FloatVector odd2 = even0;
    FloatVector odd3 = even0;
    int k = 0;
    for (; k + 1 < steps; k += 2) {
      long at = 4L * k;
      FloatVector weight = Lanes.f32(w, wAt + (long) k * VectorWeights.STEP_BYTES);
      even0 = weight.fma(broadcast(x, x0 + at), even0);
      even1 = weight.fma(broadcast(x, x1 + at), even1);
      even2 = weight.fma(broadcast(x, x2 + at), even2);
      even3 = weight.fma(broadcast(x, x3 + at), even3);
      weight = Lanes.f32(w, wAt + (k + 1L) * VectorWeights.STEP_BYTES);
      odd0 = weight.fma(broadcast(x, x0 + at + 4), odd0);
      odd1 = weight.fma(broadcast(x, x1 + at + 4), odd1);
      odd2 = weight.fma(broadcast(x, x2 + at + 4), odd2);
      odd3 = weight.fma(broadcast(x, x3 + at + 4), odd3);
    }
    if (k < steps) {
      long at = 4L * k;
      FloatVector weight = Lanes.f32(w, wAt + (long) k * VectorWeights.STEP_BYTES);
      even0 = weight.fma(broadcast(x, x0 + at), even0);
      even1 = weight.fma(broadcast(x, x1 + at), even1);
      even2 = weight.fma(broadcast(x, x2 + at), even2);
      even3 = weight.fma(broadcast(x, x3 + at), even3);
    }
    accumulate(sums, sumAt, even0, odd0);
    accumulate(sums, sumAt + VectorWeights.STEP_BYTES, even1, odd1);
    accumulate(sums, sumAt + 2L * VectorWeights.STEP_BYTES, even2, odd2);
    accumulate(sums, sumAt + 3L * VectorWeights.STEP_BYTES, even3, odd3);
  }

  /** y = sums + bias, the columns that exist. */
  private static void store(
      MemorySegment sums,
      int rows,
      @Nullable MemorySegment bias,
      int panel,
      int n,
      MemorySegment y,
      long yRow,
      int ldy) {
    int first = panel * VectorWeights.PANEL_ROWS;
    int columns = Math.min(VectorWeights.PANEL_ROWS, n - first);
    for (int row = 0; row < rows; row++) {
      for (int c = 0; c < columns; c++) {
        float sum = sums.get(JAVA_FLOAT, (long) row * VectorWeights.STEP_BYTES + 4L * c);
        float value = bias == null ? sum : sum + bias.getAtIndex(JAVA_FLOAT, first + c);
        y.setAtIndex(JAVA_FLOAT, yRow + (long) row * ldy + first + c, value);
      }
    }
  }
}
