package dev.tacho.engine.kernel.vector;

import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;
import jdk.incubator.vector.VectorShape;
import jdk.incubator.vector.VectorSpecies;

/**
 * The vector shapes in use, and the loads that turn 16-bit elements into floats in registers. Species are
 * {@code static final} and vectors stay in locals of small static methods: anything else would put them on the heap.
 *
 * <p>Sums over the lanes of a vector are not taken with {@code reduceLanes(ADD)}, whose order may change when the JIT
 * compiles; kernels store the lanes and add them up in order.
 */
final class Lanes {
  static final VectorSpecies<Float> FLOATS = FloatVector.SPECIES_PREFERRED;
  static final int COUNT = FLOATS.length();
  static final int BYTES = COUNT * Float.BYTES;
  static final ByteOrder ORDER = ByteOrder.LITTLE_ENDIAN;

  private static final VectorSpecies<Integer> INTS = VectorSpecies.of(int.class, FLOATS.vectorShape());
  private static final VectorSpecies<Short> HALVES =
      VectorSpecies.of(short.class, VectorShape.forBitSize(COUNT * Short.SIZE));

  private Lanes() {}

  static FloatVector f32(MemorySegment segment, long offset) {
    return FloatVector.fromMemorySegment(FLOATS, segment, offset, ORDER);
  }

  static IntVector ints(MemorySegment segment, long offset) {
    return IntVector.fromMemorySegment(INTS, segment, offset, ORDER);
  }

  /**
   * Halves: the bits moved to where a float has them are the value times 2^-112, denormal ones included; infinity and
   * NaN need their exponent back.
   */
  static FloatVector f16(MemorySegment segment, long offset) {
    IntVector bits = shorts(segment, offset);
    IntVector size = bits.and(0x7fff);
    IntVector floats =
        size.lanewise(VectorOperators.LSHL, 13).reinterpretAsFloats().mul(0x1p112f).reinterpretAsInts();
    IntVector special = floats.or(0x7f800000);
    IntVector sign = bits.and(0x8000).lanewise(VectorOperators.LSHL, 16);
    return floats
        .blend(special, size.compare(VectorOperators.GE, 0x7c00))
        .or(sign)
        .reinterpretAsFloats();
  }

  static FloatVector bf16(MemorySegment segment, long offset) {
    return shorts(segment, offset).lanewise(VectorOperators.LSHL, 16).reinterpretAsFloats();
  }

  private static IntVector shorts(MemorySegment segment, long offset) {
    return (IntVector)
        ShortVector.fromMemorySegment(HALVES, segment, offset, ORDER)
            .convertShape(VectorOperators.ZERO_EXTEND_S2I, INTS, 0);
  }

  /**
   * e to the power of each lane, 2 units in the last place; below -87 the power of -87 (1.6e-38), above 88 that of 88.
   * A NaN stays one: the result is a product with it.
   */
  static FloatVector exp(FloatVector x) {
    FloatVector v = x.max(-87f).min(88f);
    FloatVector shifted = v.mul(1.442695f).add(12582912f);
    FloatVector n = shifted.sub(12582912f);
    FloatVector r = n.fma(FloatVector.broadcast(FLOATS, -0.6933594f), v);
    r = n.fma(FloatVector.broadcast(FLOATS, 2.1219444e-4f), r);
    FloatVector p = FloatVector.broadcast(FLOATS, 1.9875691e-4f);
    p = p.fma(r, FloatVector.broadcast(FLOATS, 1.3981999e-3f));
    p = p.fma(r, FloatVector.broadcast(FLOATS, 8.333452e-3f));
    p = p.fma(r, FloatVector.broadcast(FLOATS, 4.1665796e-2f));
    p = p.fma(r, FloatVector.broadcast(FLOATS, 0.16666666f));
    p = p.fma(r, FloatVector.broadcast(FLOATS, 0.5f));
    p = p.fma(r.mul(r), r).add(1f);
    IntVector exponent = shifted.reinterpretAsInts().sub(0x4b400000 - 127);
    return p.mul(exponent.lanewise(VectorOperators.LSHL, 23).reinterpretAsFloats());
  }

  /** The hyperbolic tangent of each lane, within 1e-7. */
  static FloatVector tanh(FloatVector x) {
    FloatVector power = exp(x.add(x));
    return FloatVector.broadcast(FLOATS, 1f).sub(FloatVector.broadcast(FLOATS, 2f).div(power.add(1f)));
  }
}
