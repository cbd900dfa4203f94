package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.FLOATS;
import static dev.tacho.engine.kernel.vector.Lanes.ORDER;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static jdk.incubator.vector.FloatVector.broadcast;
import static jdk.incubator.vector.FloatVector.fromMemorySegment;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Operations on one row of floats. Offsets are in bytes; {@code y} may be an operand. Whole vectors first, then the
 * rest one by one, so that an element's arithmetic depends on its place in the row alone. Stateless.
 */
final class VectorRows {
  /** Floats of a row whose powers of e are taken at a time. */
  private static final int SILU_RUN = 1024;

  private VectorRows() {}

  /** The sum of squares; {@code lanes} holds one vector of scratch. */
  static float squares(MemorySegment x, long xAt, int n, MemorySegment lanes) {
    FloatVector even = FloatVector.zero(FLOATS);
    FloatVector odd = FloatVector.zero(FLOATS);
    int j = 0;
    for (; j + 2 * Lanes.COUNT <= n; j += 2 * Lanes.COUNT) {
      FloatVector first = fromMemorySegment(FLOATS, x, xAt + 4L * j, ORDER);
      FloatVector second = fromMemorySegment(FLOATS, x, xAt + 4L * j + Lanes.BYTES, ORDER);
      even = first.fma(first, even);
      odd = second.fma(second, odd);
    }
    even.add(odd).intoMemorySegment(lanes, 0, ORDER);
    float sum = sum(lanes, 0, Lanes.COUNT);
    for (; j < n; j++) {
      float value = x.get(JAVA_FLOAT, xAt + 4L * j);
      sum += value * value;
    }
    return sum;
  }

  /** The sum of a few floats in order. */
  static float sum(MemorySegment lanes, long at, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++) {
      sum += lanes.get(JAVA_FLOAT, at + 4L * i);
    }
    return sum;
  }

  /** y = x * factor * weight. */
  static void scale(
      MemorySegment x,
      long xAt,
      float factor,
      MemorySegment weight,
      long weightAt,
      int n,
      MemorySegment y,
      long yAt) {
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      long at = 4L * j;
      FloatVector scaled = fromMemorySegment(FLOATS, x, xAt + at, ORDER).mul(factor);
      FloatVector weights = fromMemorySegment(FLOATS, weight, weightAt + at, ORDER);
      scaled.mul(weights).intoMemorySegment(y, yAt + at, ORDER);
    }
    for (; j < n; j++) {
      long at = 4L * j;
      y.set(JAVA_FLOAT, yAt + at, x.get(JAVA_FLOAT, xAt + at) * factor * weight.get(JAVA_FLOAT, weightAt + at));
    }
  }

  /** y = a + b. */
  static void add(MemorySegment a, long aAt, MemorySegment b, long bAt, int n, MemorySegment y, long yAt) {
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      long at = 4L * j;
      FloatVector second = fromMemorySegment(FLOATS, b, bAt + at, ORDER);
      fromMemorySegment(FLOATS, a, aAt + at, ORDER).add(second).intoMemorySegment(y, yAt + at, ORDER);
    }
    for (; j < n; j++) {
      long at = 4L * j;
      y.set(JAVA_FLOAT, yAt + at, a.get(JAVA_FLOAT, aAt + at) + b.get(JAVA_FLOAT, bAt + at));
    }
  }

  /** y = gate / (1 + exp(-gate)) * up; {@code powers} holds 4 KiB of scratch. */
  static void siluMul(
      MemorySegment gate,
      long gateAt,
      MemorySegment up,
      long upAt,
      int n,
      MemorySegment y,
      long yAt,
      MemorySegment powers) {
    int whole = n / Lanes.COUNT * Lanes.COUNT;
    for (int j = 0; j < whole; j += SILU_RUN) {
      int run = Math.min(SILU_RUN, whole - j);
      Exponential.powers(gate, gateAt + 4L * j, run, -1, 0, powers, 0);
      gated(gate, gateAt + 4L * j, powers, up, upAt + 4L * j, run, y, yAt + 4L * j);
    }
    for (int j = whole; j < n; j++) {
      long at = 4L * j;
      float g = gate.get(JAVA_FLOAT, gateAt + at);
      y.set(JAVA_FLOAT, yAt + at, (float) (g / (1 + Math.exp(-g))) * up.get(JAVA_FLOAT, upAt + at));
    }
  }

  /** y = gate / (1 + power) * up, whole vectors. */
  private static void gated(
      MemorySegment gate,
      long gateAt,
      MemorySegment powers,
      MemorySegment up,
      long upAt,
      int n,
      MemorySegment y,
      long yAt) {
    for (int j = 0; j < n; j += Lanes.COUNT) {
      long at = 4L * j;
      FloatVector divisor = fromMemorySegment(FLOATS, powers, at, ORDER).add(1f);
      FloatVector share = fromMemorySegment(FLOATS, gate, gateAt + at, ORDER).div(divisor);
      share.mul(fromMemorySegment(FLOATS, up, upAt + at, ORDER)).intoMemorySegment(y, yAt + at, ORDER);
    }
  }

  /** y = softmax(x * scale); {@code lanes} holds one vector of scratch. */
  static void softmax(
      MemorySegment x, long xAt, float scale, int n, MemorySegment y, long yAt, MemorySegment lanes) {
    powers(x, xAt, scale, largest(x, xAt, scale, n), n, y, yAt);
    divide(y, yAt, total(y, yAt, n, lanes), n);
  }

  /** y = exp(x * scale - max). */
  private static void powers(MemorySegment x, long xAt, float scale, float max, int n, MemorySegment y, long yAt) {
    int whole = n / Lanes.COUNT * Lanes.COUNT;
    Exponential.powers(x, xAt, whole, scale, max, y, yAt);
    for (int j = whole; j < n; j++) {
      y.set(JAVA_FLOAT, yAt + 4L * j, (float) Math.exp(x.get(JAVA_FLOAT, xAt + 4L * j) * scale - max));
    }
  }

  private static float total(MemorySegment y, long yAt, int n, MemorySegment lanes) {
    FloatVector sums = FloatVector.zero(FLOATS);
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      sums = sums.add(fromMemorySegment(FLOATS, y, yAt + 4L * j, ORDER));
    }
    sums.intoMemorySegment(lanes, 0, ORDER);
    return sum(lanes, 0, Lanes.COUNT) + sum(y, yAt + 4L * j, n - j);
  }

  /** The largest x * scale. */
  static float largest(MemorySegment x, long xAt, float scale, int n) {
    FloatVector most = broadcast(FLOATS, Float.NEGATIVE_INFINITY);
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      most = most.max(fromMemorySegment(FLOATS, x, xAt + 4L * j, ORDER).mul(scale));
    }
    float max = most.reduceLanes(VectorOperators.MAX);
    for (; j < n; j++) {
      max = Math.max(max, x.get(JAVA_FLOAT, xAt + 4L * j) * scale);
    }
    return max;
  }

  private static void divide(MemorySegment y, long yAt, float divisor, int n) {
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      fromMemorySegment(FLOATS, y, yAt + 4L * j, ORDER).div(divisor).intoMemorySegment(y, yAt + 4L * j, ORDER);
    }
    for (; j < n; j++) {
      y.set(JAVA_FLOAT, yAt + 4L * j, y.get(JAVA_FLOAT, yAt + 4L * j) / divisor);
    }
  }
}
