package dev.tacho.engine.kernel.vector;

import dev.tacho.engine.kernel.ArgumentChecks;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;

/**
 * The packed layout: panels of 16 rows that hold all of k, so that one vector carries outputs side by side and no sum
 * over lanes is needed. Rows past n are zeros; a few bytes behind the last panel are there to be read with it.
 *
 * <pre>
 *   F32, F16, BF16   [k][16 rows]
 *   Q8_0             k / 32 times  | f16 scale [16 rows] | int8 [32 k][16 rows] |
 *   Q4_0             k / 32 times  | f16 scale [16 rows] | [16 k][16 rows], low nibble k, high nibble k + 16 |
 * </pre>
 *
 * <p>Stateless.
 */
final class VectorWeights {
  static final int PANEL_ROWS = Kernels.ROW_GROUP;

  /** Bytes of one k of a panel as floats. */
  static final int STEP_BYTES = PANEL_ROWS * Float.BYTES;

  private static final int BLOCK = 32;
  private static final int SCALES_BYTES = PANEL_ROWS * Short.BYTES;

  private VectorWeights() {}

  static long bytes(DType dtype, int n, int k) {
    ArgumentChecks.weightShape(dtype, n, k);
    long panels = Math.multiplyExact(ArgumentChecks.rowGroups(n), panelBytes(dtype, k));
    return Math.addExact(panels, Lanes.OVERREAD_BYTES);
  }

  /** A panel has the bytes of its rows in the file, in another order. */
  static long panelBytes(DType dtype, int k) {
    return PANEL_ROWS * dtype.bytes(k);
  }

  static void pack(Weight weight, MemorySegment source, int panel) {
    DType dtype = weight.dtype();
    long rowBytes = dtype.bytes(weight.k());
    MemorySegment to = weight.data();
    long at = panel * panelBytes(dtype, weight.k());
    for (int row = 0; row < PANEL_ROWS; row++) {
      int from = panel * PANEL_ROWS + row;
      if (from >= weight.n()) {
        packZeros(dtype, to, at, row, weight.k());
      } else if (dtype.blockElements() == 1) {
        packElements(dtype, source, from * rowBytes, to, at, row, weight.k());
      } else {
        packBlocks(dtype, source, from * rowBytes, to, at, row, weight.k());
      }
    }
  }

  private static void packElements(
      DType dtype, MemorySegment source, long from, MemorySegment to, long at, int row, int k) {
    int bytes = dtype.blockBytes();
    for (int j = 0; j < k; j++) {
      MemorySegment.copy(source, from + (long) j * bytes, to, at + ((long) j * PANEL_ROWS + row) * bytes, bytes);
    }
  }

  /** A block's scale goes to the scales, its code bytes to every sixteenth byte behind them. */
  private static void packBlocks(
      DType dtype, MemorySegment source, long from, MemorySegment to, long at, int row, int k) {
    int codes = dtype.blockBytes() - Short.BYTES;
    for (int block = 0; block < k / BLOCK; block++) {
      long file = from + (long) block * dtype.blockBytes();
      long unit = at + (long) block * PANEL_ROWS * dtype.blockBytes();
      MemorySegment.copy(source, file, to, unit + (long) row * Short.BYTES, Short.BYTES);
      for (int i = 0; i < codes; i++) {
        byte code = source.get(ValueLayout.JAVA_BYTE, file + Short.BYTES + i);
        to.set(ValueLayout.JAVA_BYTE, unit + SCALES_BYTES + (long) i * PANEL_ROWS + row, code);
      }
    }
  }

  private static void packZeros(DType dtype, MemorySegment to, long at, int row, int k) {
    int units = k / dtype.blockElements();
    int head = dtype.blockElements() == 1 ? dtype.blockBytes() : Short.BYTES;
    int codes = dtype.blockBytes() - head;
    for (int u = 0; u < units; u++) {
      long unit = at + (long) u * PANEL_ROWS * dtype.blockBytes();
      to.asSlice(unit + (long) row * head, head).fill((byte) 0);
      for (int i = 0; i < codes; i++) {
        to.set(ValueLayout.JAVA_BYTE, unit + SCALES_BYTES + (long) i * PANEL_ROWS + row, (byte) 0);
      }
    }
  }

  /** Element {@code j} of a row. */
  static float get(Weight weight, int row, int j) {
    DType dtype = weight.dtype();
    MemorySegment data = weight.data();
    long panel = row / PANEL_ROWS * panelBytes(dtype, weight.k());
    int lane = row % PANEL_ROWS;
    if (dtype.blockElements() == 1) {
      return Elements.get(dtype, data, panel, (long) j * PANEL_ROWS + lane);
    }
    long unit = panel + (long) (j / BLOCK) * PANEL_ROWS * dtype.blockBytes();
    float scale = Elements.f16(data, unit + (long) lane * Short.BYTES);
    int step = dtype == DType.Q8_0 ? j % BLOCK : j % (BLOCK / 2);
    int code = data.get(ValueLayout.JAVA_BYTE, unit + SCALES_BYTES + (long) step * PANEL_ROWS + lane);
    if (dtype == DType.Q4_0) {
      code = ((j % BLOCK < BLOCK / 2 ? code : code >> 4) & 15) - 8;
    }
    return scale * code;
  }

  /**
   * Writes steps [from, to) of a panel into {@code floats} at {@code at}, [to - from][16]; borders are multiples of 32
   * or k itself. Every product of scale and code is exact.
   */
  static void unpack(
      DType dtype, MemorySegment data, long panel, int from, int to, MemorySegment floats, long at) {
    switch (dtype) {
      case F32, F16, BF16 -> {
        long first = panel + (long) from * PANEL_ROWS * dtype.blockBytes();
        Widening.widen(dtype, data, first, (to - from) * PANEL_ROWS, floats, at);
      }
      case Q8_0 -> unpackQ8(data, panel, from, to, floats, at);
      case Q4_0 -> unpackQ4(data, panel, from, to, floats, at);
    }
  }

  private static void unpackQ8(
      MemorySegment data, long panel, int from, int to, MemorySegment floats, long floatsAt) {
    for (int start = from; start < to; start += BLOCK) {
      long unit = panel + (long) (start / BLOCK) * PANEL_ROWS * DType.Q8_0.blockBytes();
      for (int lane = 0; lane < PANEL_ROWS; lane += Lanes.COUNT) {
        FloatVector scale = Lanes.f16(data, unit + (long) lane * Short.BYTES);
        long codes = unit + SCALES_BYTES + lane;
        long target = floatsAt + (long) (start - from) * STEP_BYTES + (long) lane * Float.BYTES;
        for (int j = 0; j < BLOCK; j++) {
          FloatVector weights = Lanes.int8(data, codes + (long) j * PANEL_ROWS).mul(scale);
          weights.intoMemorySegment(floats, target + (long) j * STEP_BYTES, Lanes.ORDER);
        }
      }
    }
  }

  private static void unpackQ4(
      MemorySegment data, long panel, int from, int to, MemorySegment floats, long floatsAt) {
    for (int start = from; start < to; start += BLOCK) {
      long unit = panel + (long) (start / BLOCK) * PANEL_ROWS * DType.Q4_0.blockBytes();
      for (int lane = 0; lane < PANEL_ROWS; lane += Lanes.COUNT) {
        FloatVector scale = Lanes.f16(data, unit + (long) lane * Short.BYTES);
        long codes = unit + SCALES_BYTES + lane;
        long target = floatsAt + (long) (start - from) * STEP_BYTES + (long) lane * Float.BYTES;
        for (int j = 0; j < BLOCK / 2; j++) {
          IntVector pairs = Lanes.pairs(data, codes + (long) j * PANEL_ROWS);
          long at = target + (long) j * STEP_BYTES;
          Lanes.lowCodes(pairs).mul(scale).intoMemorySegment(floats, at, Lanes.ORDER);
          long upper = at + BLOCK / 2L * STEP_BYTES;
          Lanes.highCodes(pairs).mul(scale).intoMemorySegment(floats, upper, Lanes.ORDER);
        }
      }
    }
  }
}
