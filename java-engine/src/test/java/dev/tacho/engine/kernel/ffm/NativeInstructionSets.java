package dev.tacho.engine.kernel.ffm;

import dev.tacho.engine.UnsupportedException;
import dev.tacho.engine.kernel.Kernels;

/** Opens the native kernels of one instruction set for tests of other packages. */
public final class NativeInstructionSets {
  private NativeInstructionSets() {}

  /** The kernels; a library that cannot be loaded fails the test. */
  public static Kernels open(InstructionSet set) {
    try {
      NativeLibrary.ensureLoaded();
    } catch (LibraryUnavailableException e) {
      throw new AssertionError("tests need the native library", e);
    }
    return NativeKernels.of(set);
  }

  /** What the CPU lacks for an instruction set, or the empty string. */
  public static String missing(InstructionSet set) {
    try {
      open(set);
      return "";
    } catch (UnsupportedException e) {
      return e.what() + ": " + e.supported();
    }
  }
}
