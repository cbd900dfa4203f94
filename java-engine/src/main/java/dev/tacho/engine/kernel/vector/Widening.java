package dev.tacho.engine.kernel.vector;

import static dev.tacho.engine.kernel.vector.Lanes.ORDER;

import dev.tacho.engine.kernel.DType;
import java.lang.foreign.MemorySegment;
import jdk.incubator.vector.FloatVector;
import jdk.incubator.vector.IntVector;
import jdk.incubator.vector.ShortVector;
import jdk.incubator.vector.VectorOperators;

/** Turns runs of F32, F16 or BF16 elements, a multiple of 16 of them, into floats in another place. Stateless. */
final class Widening {
  private Widening() {}

  static void widen(DType dtype, MemorySegment from, long at, int elements, MemorySegment floats, long floatsAt) {
    switch (dtype) {
      case F32 -> MemorySegment.copy(from, at, floats, floatsAt, (long) elements * Float.BYTES);
      case F16 -> f16(from, at, elements, floats, floatsAt);
      case BF16 -> bf16(from, at, elements, floats, floatsAt);
      case Q8_0, Q4_0, Q4_K, Q6_K ->
          throw new IllegalArgumentException(dtype + " is no type of single elements");
    }
  }

  /**
   * Halves: the bits moved to where a float has them are the value times 2^-112, denormal ones included; infinity and
   * NaN need their exponent back.
   */
  private static void f16(MemorySegment from, long at, int elements, MemorySegment floats, long floatsAt) {
    for (int i = 0; i < elements; i += Lanes.COUNT) {
      ShortVector halves = ShortVector.fromMemorySegment(Lanes.HALVES, from, at + 2L * i, ORDER);
      IntVector bits = (IntVector) halves.convertShape(VectorOperators.ZERO_EXTEND_S2I, Lanes.INTS, 0);
      IntVector size = bits.and(0x7fff);
      FloatVector scaled = size.lanewise(VectorOperators.LSHL, 13).reinterpretAsFloats().mul(0x1p112f);
      IntVector value = scaled.reinterpretAsInts();
      IntVector special = value.or(0x7f800000);
      IntVector sign = bits.and(0x8000).lanewise(VectorOperators.LSHL, 16);
      value
          .blend(special, size.compare(VectorOperators.GE, 0x7c00))
          .or(sign)
          .reinterpretAsFloats()
          .intoMemorySegment(floats, floatsAt + 4L * i, ORDER);
    }
  }

  private static void bf16(MemorySegment from, long at, int elements, MemorySegment floats, long floatsAt) {
    for (int i = 0; i < elements; i += Lanes.COUNT) {
      ShortVector halves = ShortVector.fromMemorySegment(Lanes.HALVES, from, at + 2L * i, ORDER);
      IntVector bits = (IntVector) halves.convertShape(VectorOperators.ZERO_EXTEND_S2I, Lanes.INTS, 0);
      bits.lanewise(VectorOperators.LSHL, 16)
          .reinterpretAsFloats()
          .intoMemorySegment(floats, floatsAt + 4L * i, ORDER);
    }
  }
}
