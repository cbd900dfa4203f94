package dev.tacho.engine.kernel.ffm;

import java.util.Locale;

/** The instruction sets that the native library has kernels for, with their numbers in {@code tacho.h}. */
public enum InstructionSet {
  /** Any x86-64 CPU. */
  SCALAR(NativeAbi.ISA_SCALAR),
  /** AVX2, FMA and F16C. */
  AVX2(NativeAbi.ISA_AVX2),
  /** AVX-512 F, BW, VL and DQ. */
  AVX512(NativeAbi.ISA_AVX512);

  private final int id;

  InstructionSet(int id) {
    this.id = id;
  }

  /** The number in {@code tacho.h}. */
  public int id() {
    return id;
  }

  /** The word of {@code TACHO_MAX_ISA}. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  static InstructionSet of(int id) {
    for (InstructionSet set : values()) {
      if (set.id == id) {
        return set;
      }
    }
    throw new IllegalArgumentException("no instruction set has the number " + id);
  }
}
