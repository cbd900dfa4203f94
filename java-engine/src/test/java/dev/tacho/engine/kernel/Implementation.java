package dev.tacho.engine.kernel;

import dev.tacho.engine.kernel.ffm.InstructionSet;
import dev.tacho.engine.kernel.ffm.NativeInstructionSets;
import dev.tacho.engine.kernel.scalar.ScalarKernelProvider;
import dev.tacho.engine.kernel.vector.VectorKernelProvider;
import java.util.stream.Stream;

/**
 * The kernels under contract: every provider that this project's tests must have, and the native one once for each
 * instruction set. A provider that is missing fails the tests; an instruction set that the CPU lacks is named in the
 * output and left out.
 */
public enum Implementation {
  SCALAR {
    @Override
    public Kernels open() {
      return ready(new ScalarKernelProvider());
    }

    @Override
    Kernels oracle() {
      return new ReferenceKernels();
    }
  },
  VECTOR {
    @Override
    public Kernels open() {
      return ready(new VectorKernelProvider());
    }
  },
  NATIVE_SCALAR {
    @Override
    public Kernels open() {
      return NativeInstructionSets.open(InstructionSet.SCALAR);
    }
  },
  NATIVE_AVX2 {
    @Override
    public Kernels open() {
      return NativeInstructionSets.open(InstructionSet.AVX2);
    }

    @Override
    String missing() {
      return NativeInstructionSets.missing(InstructionSet.AVX2);
    }
  },
  NATIVE_AVX512 {
    @Override
    public Kernels open() {
      return NativeInstructionSets.open(InstructionSet.AVX512);
    }

    @Override
    String missing() {
      return NativeInstructionSets.missing(InstructionSet.AVX512);
    }
  },
  NATIVE_AVX512_VNNI {
    @Override
    public Kernels open() {
      return NativeInstructionSets.open(InstructionSet.AVX512_VNNI);
    }

    @Override
    String missing() {
      return NativeInstructionSets.missing(InstructionSet.AVX512_VNNI);
    }
  },
  NATIVE_AVX512_BF16 {
    @Override
    public Kernels open() {
      return NativeInstructionSets.open(InstructionSet.AVX512_BF16);
    }

    @Override
    String missing() {
      return NativeInstructionSets.missing(InstructionSet.AVX512_BF16);
    }
  },
  NATIVE_AMX {
    @Override
    public Kernels open() {
      return NativeInstructionSets.open(InstructionSet.AMX);
    }

    @Override
    String missing() {
      return NativeInstructionSets.missing(InstructionSet.AMX);
    }
  };

  /** The kernels; what must be there and is not fails the test. */
  public abstract Kernels open();

  /** What its results are compared with. */
  Kernels oracle() {
    return SCALAR.open();
  }

  /** Bytes of a block of INT8 activations: those of {@code tacho.h}, or the provider's own. */
  int activationBlockBytes() {
    return switch (this) {
      case SCALAR -> 36;
      case VECTOR -> 164;
      default -> 56;
    };
  }

  /** Words for what this machine lacks, or the empty string. */
  String missing() {
    return "";
  }

  /** Those that this machine can run; says which it cannot. */
  public static Stream<Implementation> available() {
    return Stream.of(values()).filter(Implementation::isAvailable);
  }

  private boolean isAvailable() {
    if (!missing().isEmpty()) {
      System.out.println("contract of " + this + " not run here: " + missing());
    }
    return missing().isEmpty();
  }

  private static Kernels ready(KernelProvider provider) {
    return switch (provider.find()) {
      case KernelProvider.Ready(Kernels kernels, String _) -> kernels;
      case KernelProvider.Missing(String reason) -> throw new AssertionError(provider.id() + ": " + reason);
    };
  }
}
