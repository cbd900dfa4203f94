package dev.tacho.engine.kernel.ffm;

import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The instruction sets that the native library has kernels for, with their numbers in {@code tacho.h}. */
public enum InstructionSet {
  /** Any x86-64 CPU. */
  SCALAR(NativeAbi.ISA_SCALAR),
  /** AVX2, FMA and F16C. */
  AVX2(NativeAbi.ISA_AVX2),
  /** AVX-512 F, BW, VL and DQ. */
  AVX512(NativeAbi.ISA_AVX512),
  /** The same and VNNI. */
  AVX512_VNNI(NativeAbi.ISA_AVX512_VNNI),
  /** The same, VNNI and BF16. */
  AVX512_BF16(NativeAbi.ISA_AVX512_BF16),
  /** The same and AMX: products of tiles of int8 and of BF16. */
  AMX(NativeAbi.ISA_AMX);

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

  /** The words in a sentence: {@code a, b or c}. */
  static String words() {
    String all = Stream.of(values()).map(InstructionSet::word).collect(Collectors.joining(", "));
    int last = all.lastIndexOf(", ");
    return all.substring(0, last) + " or " + all.substring(last + 2);
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
