package dev.tacho.engine.kernel.vector;

import dev.tacho.engine.kernel.DType;
import java.lang.foreign.MemorySegment;

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

  private static void f16(MemorySegment from, long at, int elements, MemorySegment floats, long floatsAt) {
    for (int i = 0; i < elements; i += Lanes.COUNT) {
      Lanes.f16(from, at + 2L * i).intoMemorySegment(floats, floatsAt + 4L * i, Lanes.ORDER);
    }
  }

  private static void bf16(MemorySegment from, long at, int elements, MemorySegment floats, long floatsAt) {
    for (int i = 0; i < elements; i += Lanes.COUNT) {
      Lanes.bf16(from, at + 2L * i).intoMemorySegment(floats, floatsAt + 4L * i, Lanes.ORDER);
    }
  }
}
