package dev.tacho.engine.kernel;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Reads and writes single elements of every type, exactly as GGUF and the KV cache hold them: little-endian, at any
 * alignment. Stateless; every method is one or two loads. Rounding to F16 and BF16 is to nearest, ties to even.
 */
public final class Elements {
  private static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private Elements() {}

  /** The float at a byte offset. */
  public static float f32(MemorySegment segment, long offset) {
    return segment.get(FLOAT, offset);
  }

  /** The half precision number at a byte offset. */
  public static float f16(MemorySegment segment, long offset) {
    return Float.float16ToFloat(segment.get(SHORT, offset));
  }

  /** The upper half of a float at a byte offset. */
  public static float bf16(MemorySegment segment, long offset) {
    return Float.intBitsToFloat(segment.get(SHORT, offset) << 16);
  }

  /** Element {@code j} of the Q8_0 block at a byte offset. The product is exact: 8 and 11 significant bits. */
  public static float q8(MemorySegment segment, long block, int j) {
    return f16(segment, block) * q8Code(segment, block, j);
  }

  /** The code of element {@code j} of the Q8_0 block at a byte offset, -128 to 127. */
  public static int q8Code(MemorySegment segment, long block, int j) {
    return segment.get(ValueLayout.JAVA_BYTE, block + 2 + j);
  }

  /** Element {@code j} of the Q4_0 block at a byte offset. */
  public static float q4(MemorySegment segment, long block, int j) {
    return f16(segment, block) * q4Code(segment, block, j);
  }

  /** The code of element {@code j} of the Q4_0 block at a byte offset, -8 to 7. */
  public static int q4Code(MemorySegment segment, long block, int j) {
    int pair = segment.get(ValueLayout.JAVA_BYTE, block + 2 + j % 16);
    return (j < 16 ? pair & 15 : (pair >> 4) & 15) - 8;
  }

  /** Element {@code j} of the Q4_K block at a byte offset: a difference of two exact products, rounded once. */
  public static float q4k(MemorySegment segment, long block, int j) {
    float value = KQuants.q4Scale(segment, block, j / 32) * KQuants.q4Code(segment, block, j);
    return value - KQuants.q4Min(segment, block, j / 32);
  }

  /** Element {@code j} of the Q6_K block at a byte offset. */
  public static float q6k(MemorySegment segment, long block, int j) {
    return KQuants.q6Scale(segment, block, j / 16) * KQuants.q6Code(segment, block, j);
  }

  /** Element {@code j} of the row of {@code dtype} that starts at a byte offset. */
  public static float get(DType dtype, MemorySegment segment, long row, long j) {
    return switch (dtype) {
      case F32 -> f32(segment, row + j * 4);
      case F16 -> f16(segment, row + j * 2);
      case BF16 -> bf16(segment, row + j * 2);
      case Q8_0 -> q8(segment, row + j / 32 * dtype.blockBytes(), (int) (j % 32));
      case Q4_0 -> q4(segment, row + j / 32 * dtype.blockBytes(), (int) (j % 32));
      case Q4_K -> q4k(segment, row + j / KQuants.BLOCK * dtype.blockBytes(), (int) (j % KQuants.BLOCK));
      case Q6_K -> q6k(segment, row + j / KQuants.BLOCK * dtype.blockBytes(), (int) (j % KQuants.BLOCK));
    };
  }

  /** Writes element {@code j} of a row of F32, F16 or BF16 that starts at a byte offset. */
  public static void set(DType dtype, MemorySegment segment, long row, long j, float value) {
    switch (dtype) {
      case F32 -> segment.set(FLOAT, row + j * 4, value);
      case F16 -> segment.set(SHORT, row + j * 2, Float.floatToFloat16(value));
      case BF16 -> segment.set(SHORT, row + j * 2, bf16Bits(value));
      case Q8_0, Q4_0, Q4_K, Q6_K ->
          throw new IllegalArgumentException("single elements of " + dtype + " cannot be written");
    }
  }

  /** The upper half of a float, rounded to nearest even; a NaN stays one. */
  public static short bf16Bits(float value) {
    int bits = Float.floatToRawIntBits(value);
    if (Float.isNaN(value)) {
      return (short) ((bits >>> 16) | 0x40);
    }
    return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
  }
}
