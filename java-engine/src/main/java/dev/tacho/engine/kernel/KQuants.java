package dev.tacho.engine.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;

/**
 * The numbers in blocks of Q4_K and Q6_K, 256 elements each, at any alignment. Stateless.
 *
 * <pre>
 *   Q4_K, 144 bytes   | f16 scale | f16 min | 12 bytes of 6-bit numbers | 128 bytes of nibbles |
 *     8 sub-blocks of 32: value = scale * subScale * code - min * subMin
 *     nibbles: 32 bytes for two sub-blocks, low ones the first
 *     6-bit numbers: bytes 0..3 subScale and 4..7 subMin of sub-blocks 0..3; the upper two bits of those bytes belong
 *     to sub-blocks 4..7, whose lower four bits are in bytes 8..11, subScale in the low nibble
 *
 *   Q6_K, 210 bytes   | 128 bytes of low nibbles | 64 bytes of 2-bit numbers | int8 subScale [16] | f16 scale |
 *     16 sub-blocks of 16: value = scale * subScale * (code - 32)
 *     halves of 128 elements: four groups of 32, of which 0 and 2, 1 and 3 share bytes of nibbles, all four the bytes
 *     of upper bits
 * </pre>
 */
public final class KQuants {
  /** Elements of a block. */
  public static final int BLOCK = 256;

  private static final int Q4_MIN = 2;
  private static final int Q4_NUMBERS = 4;
  private static final int Q4_CODES = 16;
  private static final int Q6_UPPER = 128;
  private static final int Q6_SUB_SCALES = 192;
  private static final int Q6_SCALE = 208;

  private KQuants() {}

  private static int unsigned(MemorySegment segment, long at) {
    return segment.get(JAVA_BYTE, at) & 0xff;
  }

  /** scale * subScale of a sub-block of 32, exact. */
  public static float q4Scale(MemorySegment segment, long block, int sub) {
    long at = block + Q4_NUMBERS + sub;
    int number =
        sub < 4 ? unsigned(segment, at) & 63 : (unsigned(segment, at + 4) & 15) | (unsigned(segment, at - 4) >> 6 << 4);
    return Elements.f16(segment, block) * number;
  }

  /** min * subMin of a sub-block of 32, exact. */
  public static float q4Min(MemorySegment segment, long block, int sub) {
    long at = block + Q4_NUMBERS + sub + 4;
    int number =
        sub < 4 ? unsigned(segment, at) & 63 : (unsigned(segment, at) >> 4) | (unsigned(segment, at - 4) >> 6 << 4);
    return Elements.f16(segment, block + Q4_MIN) * number;
  }

  /** The code of an element, 0 to 15. */
  public static int q4Code(MemorySegment segment, long block, int j) {
    int pair = unsigned(segment, block + Q4_CODES + j / 64 * 32L + j % 32);
    return j % 64 < 32 ? pair & 15 : pair >> 4;
  }

  /** scale * subScale of a sub-block of 16, exact. */
  public static float q6Scale(MemorySegment segment, long block, int sub) {
    return Elements.f16(segment, block + Q6_SCALE) * segment.get(JAVA_BYTE, block + Q6_SUB_SCALES + sub);
  }

  /** The code of an element less 32, -32 to 31. */
  public static int q6Code(MemorySegment segment, long block, int j) {
    int half = j / 128;
    int group = j / 32 % 4;
    int pair = unsigned(segment, block + half * 64L + group % 2 * 32L + j % 32);
    int low = group < 2 ? pair & 15 : pair >> 4;
    int upper = (unsigned(segment, block + Q6_UPPER + half * 32L + j % 32) >> (2 * group)) & 3;
    return (low | (upper << 4)) - 32;
  }
}
