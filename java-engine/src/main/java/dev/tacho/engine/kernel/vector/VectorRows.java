package dev.tacho.engine.kernel.vector;

import static java.lang.foreign.ValueLayout.JAVA_FLOAT;

import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.VectorOperators;

/**
 * Operations on one row of floats. Offsets are in bytes; {@code y} may be an operand. Whole vectors first, then the
 * rest one by one, so that an element's arithmetic depends on its place in the row alone. Stateless.
 */
final class VectorRows {
  private VectorRows() {}

  /** The sum of squares; {@code lanes} holds one vector of scratch. */
  static float squares(MemorySegment x, long xAt, int n, MemorySegment lanes) {
    FloatVector even = FloatVector.zero(Lanes.FLOATS);
    FloatVector odd = FloatVector.zero(Lanes.FLOATS);
    int j = 0;
    for (; j + 2 * Lanes.COUNT <= n; j += 2 * Lanes.COUNT) {
      FloatVector first = Lanes.f32(x, xAt + 4L * j);
      FloatVector second = Lanes.f32(x, xAt + 4L * j + Lanes.BYTES);
      even = first.fma(first, even);
      odd = second.fma(second, odd);
    }
    even.add(odd).intoMemorySegment(lanes, 0, Lanes.ORDER);
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
      FloatVector scaled = Lanes.f32(x, xAt + at).mul(factor).mul(Lanes.f32(weight, weightAt + at));
      scaled.intoMemorySegment(y, yAt + at, Lanes.ORDER);
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
      Lanes.f32(a, aAt + at).add(Lanes.f32(b, bAt + at)).intoMemorySegment(y, yAt + at, Lanes.ORDER);
    }
    for (; j < n; j++) {
      long at = 4L * j;
      y.set(JAVA_FLOAT, yAt + at, a.get(JAVA_FLOAT, aAt + at) + b.get(JAVA_FLOAT, bAt + at));
    }
  }

  /** y = gate / (1 + exp(-gate)) * up. */
  static void siluMul(
      MemorySegment gate, long gateAt, MemorySegment up, long upAt, int n, MemorySegment y, long yAt) {
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      long at = 4L * j;
      FloatVector g = Lanes.f32(gate, gateAt + at);
      FloatVector product = g.div(Lanes.exp(g.neg()).add(1f)).mul(Lanes.f32(up, upAt + at));
      product.intoMemorySegment(y, yAt + at, Lanes.ORDER);
    }
    for (; j < n; j++) {
      long at = 4L * j;
      float g = gate.get(JAVA_FLOAT, gateAt + at);
      y.set(JAVA_FLOAT, yAt + at, (float) (g / (1 + Math.exp(-g))) * up.get(JAVA_FLOAT, upAt + at));
    }
  }

  /** y = softmax(x * scale); {@code lanes} holds one vector of scratch. */
  static void softmax(
      MemorySegment x, long xAt, float scale, int n, MemorySegment y, long yAt, MemorySegment lanes) {
    powers(x, xAt, scale, largest(x, xAt, scale, n), n, y, yAt);
    divide(y, yAt, total(y, yAt, n, lanes), n);
  }

  /** y = exp(x * scale - max). A method of its own: with more around it, C2 does not inline all of exp. */
  private static void powers(MemorySegment x, long xAt, float scale, float max, int n, MemorySegment y, long yAt) {
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      FloatVector power = Lanes.exp(Lanes.f32(x, xAt + 4L * j).mul(scale).sub(max));
      power.intoMemorySegment(y, yAt + 4L * j, Lanes.ORDER);
    }
    for (; j < n; j++) {
      y.set(JAVA_FLOAT, yAt + 4L * j, (float) Math.exp(x.get(JAVA_FLOAT, xAt + 4L * j) * scale - max));
    }
  }

  private static float total(MemorySegment y, long yAt, int n, MemorySegment lanes) {
    FloatVector sums = FloatVector.zero(Lanes.FLOATS);
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      sums = sums.add(Lanes.f32(y, yAt + 4L * j));
    }
    sums.intoMemorySegment(lanes, 0, Lanes.ORDER);
    return sum(lanes, 0, Lanes.COUNT) + sum(y, yAt + 4L * j, n - j);
  }

  private static float largest(MemorySegment x, long xAt, float scale, int n) {
    FloatVector most = FloatVector.broadcast(Lanes.FLOATS, Float.NEGATIVE_INFINITY);
    int j = 0;
    for (; j + Lanes.COUNT <= n; j += Lanes.COUNT) {
      most = most.max(Lanes.f32(x, xAt + 4L * j).mul(scale));
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
      Lanes.f32(y, yAt + 4L * j).div(divisor).intoMemorySegment(y, yAt + 4L * j, Lanes.ORDER);
    }
    for (; j < n; j++) {
      y.set(JAVA_FLOAT, yAt + 4L * j, y.get(JAVA_FLOAT, yAt + 4L * j) / divisor);
    }
  }
}
