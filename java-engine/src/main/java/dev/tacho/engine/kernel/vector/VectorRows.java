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
  /** Floats of a row that {@link #siluMul} takes at a time; a multiple of an activation block. */
  static final int SILU_RUN = 1024;

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

  /** y = gate / (1 + exp(-gate)) * up; {@code y} is scratch with room for {@link #SILU_RUN}, and n at most that. */
  static void siluMul(MemorySegment gate, long gateAt, MemorySegment up, long upAt, int n, MemorySegment y) {
    int whole = n / Lanes.COUNT * Lanes.COUNT;
    Exponential.powers(gate, gateAt, whole, -1, 0, y, 0);
    gated(gate, gateAt, up, upAt, whole, y);
    for (int j = whole; j < n; j++) {
      long at = 4L * j;
      float g = gate.get(JAVA_FLOAT, gateAt + at);
      y.set(JAVA_FLOAT, at, (float) (g / (1 + Math.exp(-g))) * up.get(JAVA_FLOAT, upAt + at));
    }
  }

  /** y = gate / (1 + y) * up, whole vectors. */
  private static void gated(MemorySegment gate, long gateAt, MemorySegment up, long upAt, int n, MemorySegment y) {
    for (int j = 0; j < n; j += Lanes.COUNT) {
      long at = 4L * j;
      FloatVector divisor = fromMemorySegment(FLOATS, y, at, ORDER).add(1f);
      FloatVector share = fromMemorySegment(FLOATS, gate, gateAt + at, ORDER).div(divisor);
      share.mul(fromMemorySegment(FLOATS, up, upAt + at, ORDER)).intoMemorySegment(y, at, ORDER);
    }
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
}
