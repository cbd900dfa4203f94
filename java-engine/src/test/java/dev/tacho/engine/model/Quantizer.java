package dev.tacho.engine.model;

import dev.tacho.engine.kernel.DType;
import dev.tacho.engine.kernel.Elements;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** From floats to each type of weights, in file layout: plain rounding, no search for better scales. */
final class Quantizer {
  private static final int Q4_K_SUBS = 8;
  private static final int Q4_K_SUB = 32;
  private static final int Q6_K_SUBS = 16;
  private static final int Q6_K_SUB = 16;

  private Quantizer() {}

  /** The elements of a matrix whose rows are whole blocks. */
  static byte[] quantize(DType dtype, float[] elements) {
    ByteBuffer out = ByteBuffer.allocate((int) dtype.bytes(elements.length)).order(ByteOrder.LITTLE_ENDIAN);
    for (int at = 0; at < elements.length; at += dtype.blockElements()) {
      switch (dtype) {
        case F32 -> out.putFloat(elements[at]);
        case F16 -> out.putShort(Float.floatToFloat16(elements[at]));
        case BF16 -> out.putShort(Elements.bf16Bits(elements[at]));
        case Q8_0 -> q8(elements, at, out);
        case Q4_0 -> q4(elements, at, out);
        case Q4_K -> q4k(elements, at, out);
        case Q6_K -> q6k(elements, at, out);
      }
    }
    return out.array();
  }

  private static void q8(float[] x, int at, ByteBuffer out) {
    float scale = half(out, largest(x, at, 32) / 127);
    for (int j = 0; j < 32; j++) {
      out.put((byte) code(x[at + j], scale, -127, 127));
    }
  }

  /** The element of the largest magnitude gets code 0, which means -8 scales. */
  private static void q4(float[] x, int at, ByteBuffer out) {
    float most = largest(x, at, 32);
    boolean negative = false;
    for (int j = 0; j < 32; j++) {
      negative |= -x[at + j] == most;
    }
    float scale = half(out, (negative ? most : -most) / 8);
    for (int j = 0; j < 16; j++) {
      int low = code(x[at + j], scale, -8, 7) + 8;
      int high = code(x[at + j + 16], scale, -8, 7) + 8;
      out.put((byte) (low | high << 4));
    }
  }

  private static void q4k(float[] x, int at, ByteBuffer out) {
    float[] scales = new float[Q4_K_SUBS];
    float[] mins = new float[Q4_K_SUBS];
    for (int sub = 0; sub < Q4_K_SUBS; sub++) {
      float least = 0;
      float most = 0;
      for (int j = 0; j < Q4_K_SUB; j++) {
        least = Math.min(least, x[at + sub * Q4_K_SUB + j]);
        most = Math.max(most, x[at + sub * Q4_K_SUB + j]);
      }
      scales[sub] = (most - least) / 15;
      mins[sub] = -least;
    }
    float scale = half(out, largest(scales, 0, Q4_K_SUBS) / 63);
    float min = half(out, largest(mins, 0, Q4_K_SUBS) / 63);
    int[] scaleCodes = new int[Q4_K_SUBS];
    int[] minCodes = new int[Q4_K_SUBS];
    for (int sub = 0; sub < Q4_K_SUBS; sub++) {
      scaleCodes[sub] = code(scales[sub], scale, 0, 63);
      minCodes[sub] = code(mins[sub], min, 0, 63);
    }
    sixBits(scaleCodes, minCodes, out);
    for (int pair = 0; pair < Q4_K_SUBS; pair += 2) {
      for (int j = 0; j < Q4_K_SUB; j++) {
        int nibbles = 0;
        for (int side = 0; side < 2; side++) {
          int sub = pair + side;
          float value = x[at + sub * Q4_K_SUB + j] + min * minCodes[sub];
          nibbles |= code(value, scale * scaleCodes[sub], 0, 15) << (4 * side);
        }
        out.put((byte) nibbles);
      }
    }
  }

  private static void sixBits(int[] scales, int[] mins, ByteBuffer out) {
    for (int sub = 0; sub < 4; sub++) {
      out.put((byte) (scales[sub] | scales[sub + 4] >> 4 << 6));
    }
    for (int sub = 0; sub < 4; sub++) {
      out.put((byte) (mins[sub] | mins[sub + 4] >> 4 << 6));
    }
    for (int sub = 4; sub < Q4_K_SUBS; sub++) {
      out.put((byte) ((scales[sub] & 15) | (mins[sub] & 15) << 4));
    }
  }

  private static void q6k(float[] x, int at, ByteBuffer out) {
    float[] scales = new float[Q6_K_SUBS];
    for (int sub = 0; sub < Q6_K_SUBS; sub++) {
      scales[sub] = largest(x, at + sub * Q6_K_SUB, Q6_K_SUB) / 31;
    }
    float scale = Float.float16ToFloat(Float.floatToFloat16(largest(scales, 0, Q6_K_SUBS) / 127));
    byte[] subScales = new byte[Q6_K_SUBS];
    int[] codes = new int[Q6_K_SUBS * Q6_K_SUB];
    for (int sub = 0; sub < Q6_K_SUBS; sub++) {
      subScales[sub] = (byte) code(scales[sub], scale, 0, 127);
      for (int j = 0; j < Q6_K_SUB; j++) {
        int element = sub * Q6_K_SUB + j;
        codes[element] = code(x[at + element], scale * subScales[sub], -32, 31) + 32;
      }
    }
    for (int half = 0; half < 256; half += 128) {
      for (int j = 0; j < 64; j++) {
        out.put((byte) ((codes[half + j] & 15) | (codes[half + j + 64] & 15) << 4));
      }
    }
    for (int half = 0; half < 256; half += 128) {
      for (int j = 0; j < 32; j++) {
        int upper = 0;
        for (int group = 0; group < 4; group++) {
          upper |= codes[half + group * 32 + j] >> 4 << (2 * group);
        }
        out.put((byte) upper);
      }
    }
    out.put(subScales);
    half(out, scale);
  }

  /** Writes a half-precision number and gives what it holds then. */
  private static float half(ByteBuffer out, float value) {
    short bits = Float.floatToFloat16(value);
    out.putShort(bits);
    return Float.float16ToFloat(bits);
  }

  private static float largest(float[] x, int at, int count) {
    float most = 0;
    for (int j = 0; j < count; j++) {
      most = Math.max(most, Math.abs(x[at + j]));
    }
    return most;
  }

  private static int code(float value, float scale, int least, int most) {
    return scale == 0 ? Math.clamp(0, least, most) : Math.clamp(Math.round(value / scale), least, most);
  }
}
