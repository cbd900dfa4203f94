package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.ORDER;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import dev.tacho.engine.kernel.ArgumentChecks;
import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import dev.tacho.engine.kernel.KQuants;
import dev.tacho.engine.kernel.Kernels;
import dev.tacho.engine.kernel.Weight;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/**
 * The packed layout: panels of 16 rows that hold all of k, so that one vector carries outputs side by side and no sum
 * over lanes is needed. Rows past n are zeros. Codes of one row lie together in 4 bytes, which are taken apart by
 * shifts of int lanes: a conversion between shapes is what C2 may leave on the heap.
 *
 * <pre>
 *   F32, F16, BF16   [k][16 rows]
 *   Q8_0             k / 32 units | f32 scale [16] | int8 [8][16 rows][4 k] |
 *   Q4_0             k / 32 units | f32 scale [16] | nibbles [4][16 rows][8 k], the code |
 *   Q4_K             k / 32 units | f32 scale [16] | f32 min [16] | nibbles as Q4_0 |
 *   Q6_K             k / 16 units | f32 scale [16] | int8 [4][16 rows][4 k] |
 * </pre>
 *
 * <p>Stateless.
 */
final class VectorWeights {
  static final int PANEL_ROWS = Kernels.ROW_GROUP;

  /** Bytes of one k of a panel as floats. */
  static final int STEP_BYTES = PANEL_ROWS * Float.BYTES;

  /** Bytes of a unit of Q8_0. */
  static final long BYTES_UNIT = STEP_BYTES + 8L * STEP_BYTES;

  /** Bytes of a unit of Q4_0; Q4_K's have the minima besides. */
  static final long NIBBLES_UNIT = STEP_BYTES + 4L * STEP_BYTES;

  private static final int Q4_OFFSET = 8;

  private VectorWeights() {}

  static long bytes(DType dtype, int n, int k) {
    ArgumentChecks.weightShape(dtype, n, k);
    return Math.multiplyExact(ArgumentChecks.rowGroups(n), panelBytes(dtype, k));
  }

  /** Elements of a row in a unit of a quantised type. */
  static int unitElements(DType dtype) {
    return dtype == DType.Q6_K ? 16 : 32;
  }

  /** Elements of a row in 4 bytes. */
  private static int together(DType dtype) {
    return dtype == DType.Q4_0 || dtype == DType.Q4_K ? 8 : 4;
  }

  private static int headBytes(DType dtype) {
    return dtype == DType.Q4_K ? 2 * STEP_BYTES : STEP_BYTES;
  }

  private static long unitBytes(DType dtype) {
    return headBytes(dtype) + (long) unitElements(dtype) / together(dtype) * STEP_BYTES;
  }

  static long panelBytes(DType dtype, int k) {
    return dtype.blockElements() == 1
        ? PANEL_ROWS * dtype.bytes(k)
        : (long) (k / unitElements(dtype)) * unitBytes(dtype);
  }

  static void pack(Weight weight, MemorySegment source, int panel) {
    DType dtype = weight.dtype();
    long rowBytes = dtype.bytes(weight.k());
    long bytes = panelBytes(dtype, weight.k());
    MemorySegment to = weight.data().asSlice(panel * bytes, bytes);
    to.fill((byte) 0);
    for (int row = 0; row < Math.min(PANEL_ROWS, weight.n() - panel * PANEL_ROWS); row++) {
      long from = (long) (panel * PANEL_ROWS + row) * rowBytes;
      if (dtype.blockElements() == 1) {
        packElements(dtype, source, from, to, row, weight.k());
      } else {
        packCodes(dtype, source, from, to, row, weight.k());
      }
    }
  }

  private static void packElements(DType dtype, MemorySegment source, long from, MemorySegment to, int row, int k) {
    int bytes = dtype.blockBytes();
    for (int j = 0; j < k; j++) {
      MemorySegment.copy(source, from + (long) j * bytes, to, ((long) j * PANEL_ROWS + row) * bytes, bytes);
    }
  }

  private static void packCodes(DType dtype, MemorySegment source, long from, MemorySegment to, int row, int k) {
    int elements = unitElements(dtype);
    for (int j = 0; j < k; j++) {
      long block = from + (long) (j / dtype.blockElements()) * dtype.blockBytes();
      int inBlock = j % dtype.blockElements();
      long unit = (long) (j / elements) * unitBytes(dtype);
      if (j % elements == 0) {
        packHead(dtype, source, block, inBlock, to, unit + (long) row * Float.BYTES);
      }
      long at = codeOffset(dtype, unit, row, j % elements);
      int code =
          switch (dtype) {
            case Q8_0 -> Elements.q8Code(source, block, inBlock);
            case Q4_0 -> Elements.q4Code(source, block, inBlock) + Q4_OFFSET;
            case Q4_K -> KQuants.q4Code(source, block, inBlock);
            case Q6_K -> KQuants.q6Code(source, block, inBlock);
            case F32, F16, BF16 -> throw new IllegalArgumentException(dtype + " has no codes");
          };
      int shift = codeShift(dtype, j);
      to.set(JAVA_BYTE, at, (byte) (to.get(JAVA_BYTE, at) | (code << shift)));
    }
  }

  private static void packHead(
      DType dtype, MemorySegment source, long block, int inBlock, MemorySegment to, long at) {
    float scale =
        switch (dtype) {
          case Q4_K -> KQuants.q4Scale(source, block, inBlock / 32);
          case Q6_K -> KQuants.q6Scale(source, block, inBlock / 16);
          default -> Elements.f16(source, block);
        };
    to.set(JAVA_FLOAT, at, scale);
    if (dtype == DType.Q4_K) {
      to.set(JAVA_FLOAT, at + STEP_BYTES, KQuants.q4Min(source, block, inBlock / 32));
    }
  }

  private static long codeOffset(DType dtype, long unit, int row, int j) {
    int together = together(dtype);
    long word = unit + headBytes(dtype) + (long) (j / together) * STEP_BYTES + (long) row * Integer.BYTES;
    return word + (long) (j % together) * Integer.BYTES / together;
  }

  private static int codeShift(DType dtype, int j) {
    return together(dtype) == 8 ? j % 2 * 4 : 0;
  }

  /** Element {@code j} of a row. */
  static float get(Weight weight, int row, int j) {
    DType dtype = weight.dtype();
    MemorySegment data = weight.data();
    long panel = (long) (row / PANEL_ROWS) * panelBytes(dtype, weight.k());
    int lane = row % PANEL_ROWS;
    if (dtype.blockElements() == 1) {
      return Elements.get(dtype, data, panel, (long) j * PANEL_ROWS + lane);
    }
    int elements = unitElements(dtype);
    long unit = panel + (long) (j / elements) * unitBytes(dtype);
    long head = unit + (long) lane * Float.BYTES;
    float scale = data.get(JAVA_FLOAT, head);
    int code = data.get(JAVA_BYTE, codeOffset(dtype, unit, lane, j % elements));
    return switch (dtype) {
      case Q4_0 -> scale * (((code >> codeShift(dtype, j)) & 15) - Q4_OFFSET);
      case Q4_K -> scale * ((code >> codeShift(dtype, j)) & 15) - data.get(JAVA_FLOAT, head + STEP_BYTES);
      default -> scale * code;
    };
  }

  /** Byte offset of the scales of the unit in which a panel's element {@code j} lies; Q4_K's minima follow. */
  static long head(DType dtype, long panel, int j) {
    return panel + (long) (j / unitElements(dtype)) * unitBytes(dtype);
  }

  /** Where the offset of a unit of nibbles comes from, in bytes behind its scales: Q4_0 takes the scales themselves. */
  static int offsetAt(DType dtype) {
    return headBytes(dtype) - STEP_BYTES;
  }

  /** What it is multiplied by: a value is code * scale + offset, with one rounding. */
  static float offsetFactor(DType dtype) {
    return dtype == DType.Q4_0 ? -Q4_OFFSET : -1;
  }

  /**
   * Writes the values of steps [from, to) of a panel into {@code floats} at {@code at}, [to - from][16]; borders are
   * those of units.
   */
  static void unpack(
      DType dtype, MemorySegment data, long panel, int from, int to, MemorySegment floats, long at) {
    if (dtype.blockElements() == 1) {
      long first = panel + (long) from * PANEL_ROWS * dtype.blockBytes();
      Widening.widen(dtype, data, first, (to - from) * PANEL_ROWS, floats, at);
      return;
    }
    int elements = unitElements(dtype);
    for (int j = from; j < to; j += elements) {
      long head = head(dtype, panel, j);
      long target = at + (long) (j - from) * STEP_BYTES;
      for (int lane = 0; lane < PANEL_ROWS; lane += Lanes.COUNT) {
        long column = (long) lane * Float.BYTES;
        if (together(dtype) == 4) {
          unpackBytes(data, head + column, elements, floats, target + column);
        } else {
          unpackNibbles(data, head + column, offsetAt(dtype), offsetFactor(dtype), floats, target + column);
        }
      }
    }
  }

  private static void unpackBytes(MemorySegment data, long head, int elements, MemorySegment floats, long at) {
    FloatVector scale = FloatVector.fromMemorySegment(Lanes.FLOATS, data, head, ORDER);
    for (int j = 0; j < elements; j += 4) {
      long from = head + STEP_BYTES + (long) (j / 4) * STEP_BYTES;
      IntVector words = IntVector.fromMemorySegment(Lanes.INTS, data, from, ORDER);
      for (int i = 0; i < 4; i++) {
        IntVector code = words.lanewise(VectorOperators.LSHL, 24 - 8 * i).lanewise(VectorOperators.ASHR, 24);
        FloatVector value = (FloatVector) code.convert(VectorOperators.I2F, 0);
        value.mul(scale).intoMemorySegment(floats, at + (long) (j + i) * STEP_BYTES, ORDER);
      }
    }
  }

  private static void unpackNibbles(
      MemorySegment data, long head, int offsetAt, float factor, MemorySegment floats, long at) {
    FloatVector scale = FloatVector.fromMemorySegment(Lanes.FLOATS, data, head, ORDER);
    FloatVector offset = FloatVector.fromMemorySegment(Lanes.FLOATS, data, head + offsetAt, ORDER).mul(factor);
    for (int j = 0; j < 32; j += 8) {
      long from = head + offsetAt + STEP_BYTES + (long) (j / 8) * STEP_BYTES;
      IntVector words = IntVector.fromMemorySegment(Lanes.INTS, data, from, ORDER);
      for (int i = 0; i < 8; i++) {
        IntVector code = words.lanewise(VectorOperators.LSHR, 4 * i).and(15);
        FloatVector value = (FloatVector) code.convert(VectorOperators.I2F, 0);
        value.fma(scale, offset).intoMemorySegment(floats, at + (long) (j + i) * STEP_BYTES, ORDER);
      }
    }
  }
}
