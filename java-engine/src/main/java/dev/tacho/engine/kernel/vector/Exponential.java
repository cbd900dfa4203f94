package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.FLOATS;
import static dev.tacho.engine.kernel.vector.Lanes.ORDER;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Powers of e, 2 units in the last place; below -87 the power of -87 (1.6e-38), above 88 that of 88. A NaN stays one:
 * the result is a product with it. After Cody and Waite: {@code e^x = 2^n e^r}, r within half of ln 2 of 0 by a ln 2 of
 * two parts, e^r by the polynomial of Cephes' {@code expf}. Stateless.
 */
final class Exponential {
  private static final float LEAST = -87f;
  private static final float MOST = 88f;
  private static final float LOG2_E = 1.442695f;

  /** Added to a float, leaves the nearest whole number in the low bits of its fraction: 1.5 * 2^23. */
  private static final float ROUND = 12582912f;

  private static final float MINUS_LN2_HIGH = -0.6933594f;
  private static final float MINUS_LN2_LOW = 2.1219444e-4f;
  private static final float C5 = 1.9875691e-4f;
  private static final float C4 = 1.3981999e-3f;
  private static final float C3 = 8.333452e-3f;
  private static final float C2 = 4.1665796e-2f;
  private static final float C1 = 0.16666666f;
  private static final float C0 = 0.5f;

  /** The bits of ROUND less the bias of an exponent. */
  private static final int EXPONENT_ORIGIN = 0x4b400000 - 127;

  private static final int FRACTION_BITS = 23;

  private Exponential() {}

  /** to = exp(from * factor - origin), a multiple of {@code Lanes.COUNT} floats; {@code to} may be {@code from}. */
  static void powers(
      MemorySegment from, long fromAt, int n, float factor, float origin, MemorySegment to, long toAt) {
    for (int j = 0; j < n; j += Lanes.COUNT) {
      FloatVector x = fromMemorySegment(FLOATS, from, fromAt + 4L * j, ORDER).mul(factor).sub(origin);
      FloatVector v = x.max(LEAST).min(MOST);
      FloatVector shifted = v.mul(LOG2_E).add(ROUND);
      FloatVector whole = shifted.sub(ROUND);
      FloatVector r = whole.fma(broadcast(FLOATS, MINUS_LN2_HIGH), v);
      r = whole.fma(broadcast(FLOATS, MINUS_LN2_LOW), r);
      FloatVector p = broadcast(FLOATS, C5).fma(r, broadcast(FLOATS, C4));
      p = p.fma(r, broadcast(FLOATS, C3));
      p = p.fma(r, broadcast(FLOATS, C2));
      p = p.fma(r, broadcast(FLOATS, C1));
      p = p.fma(r, broadcast(FLOATS, C0));
      p = p.fma(r.mul(r), r).add(1f);
      IntVector exponent = shifted.reinterpretAsInts().sub(EXPONENT_ORIGIN);
      FloatVector scale =
          exponent.lanewise(VectorOperators.LSHL, FRACTION_BITS).reinterpretAsFloats();
      p.mul(scale).intoMemorySegment(to, toAt + 4L * j, ORDER);
    }
  }

  /** The same of one float, with the same bits as in a vector. */
  static float power(float x) {
    float v = Math.min(Math.max(x, LEAST), MOST);
    float shifted = v * LOG2_E + ROUND;
    float whole = shifted - ROUND;
    float r = Math.fma(whole, MINUS_LN2_HIGH, v);
    r = Math.fma(whole, MINUS_LN2_LOW, r);
    float p = Math.fma(C5, r, C4);
    p = Math.fma(p, r, C3);
    p = Math.fma(p, r, C2);
    p = Math.fma(p, r, C1);
    p = Math.fma(p, r, C0);
    p = Math.fma(p, r * r, r) + 1f;
    int exponent = Float.floatToRawIntBits(shifted) - EXPONENT_ORIGIN;
    return p * Float.intBitsToFloat(exponent << FRACTION_BITS);
  }

  /** x = cap * tanh(x / cap), a multiple of {@code Lanes.COUNT} floats, within 1e-7 of the cap. */
  static void softcap(MemorySegment x, long at, int n, float cap) {
    divide(x, at, n, cap);
    powers(x, at, n, 2f, 0f, x, at);
    for (int j = 0; j < n; j += Lanes.COUNT) {
      FloatVector power = fromMemorySegment(FLOATS, x, at + 4L * j, ORDER);
      FloatVector tanh = broadcast(FLOATS, 1f).sub(broadcast(FLOATS, 2f).div(power.add(1f)));
      tanh.mul(cap).intoMemorySegment(x, at + 4L * j, ORDER);
    }
  }

  private static void divide(MemorySegment x, long at, int n, float divisor) {
    for (int j = 0; j < n; j += Lanes.COUNT) {
      fromMemorySegment(FLOATS, x, at + 4L * j, ORDER).div(divisor).intoMemorySegment(x, at + 4L * j, ORDER);
    }
  }
}
