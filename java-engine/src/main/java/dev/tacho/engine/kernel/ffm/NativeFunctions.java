package dev.tacho.engine.kernel.ffm;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * The functions of the native library, callable. The class may be touched only after {@link
 * NativeLibrary#ensureLoaded} has returned.
 *
 * <p>The handles are {@code static final} and called with exact types, which makes a call about ten nanoseconds. No
 * call is {@code Linker.Option.critical}: a kernel would hold up every safepoint of the JVM. Any thread. Each method
 * returns the function's status.
 */
final class NativeFunctions {
  private static final MethodHandle WEIGHT_PACK = NativeAbi.bind("tacho_weight_pack");
  private static final MethodHandle ACTIVATION_PACK = NativeAbi.bind("tacho_activation_pack");
  private static final MethodHandle ACTIVATION_FORMAT = NativeAbi.bind("tacho_activation_format");
  private static final MethodHandle ACTIVATION_BYTES = NativeAbi.bind("tacho_activation_bytes");
  private static final MethodHandle MATMUL = NativeAbi.bind("tacho_matmul");
  private static final MethodHandle EMBEDDING_LOOKUP = NativeAbi.bind("tacho_embedding_lookup");
  private static final MethodHandle RMS_NORM = NativeAbi.bind("tacho_rms_norm");
  private static final MethodHandle ROPE = NativeAbi.bind("tacho_rope");
  private static final MethodHandle KV_WRITE = NativeAbi.bind("tacho_kv_write");
  private static final MethodHandle ATTENTION = NativeAbi.bind("tacho_attention");
  private static final MethodHandle KV_COPY_BLOCKS = NativeAbi.bind("tacho_kv_copy_blocks");
  private static final MethodHandle SILU_MUL = NativeAbi.bind("tacho_silu_mul");
  private static final MethodHandle BUILD_INFO = NativeAbi.bind("tacho_build_info");
  private static final MethodHandle STATUS_STRING = NativeAbi.bind("tacho_status_string");
  private static final MethodHandle LAST_ERROR = NativeAbi.bind("tacho_last_error");
  private static final MethodHandle ISA_RESOLVE = NativeAbi.bind("tacho_isa_resolve");
  private static final MethodHandle ISA_CHECK = NativeAbi.bind("tacho_isa_check");
  private static final MethodHandle MEMORY_MAP = NativeAbi.bind("tacho_memory_map");
  private static final MethodHandle MEMORY_UNMAP = NativeAbi.bind("tacho_memory_unmap");
  private static final MethodHandle WEIGHT_BYTES = NativeAbi.bind("tacho_weight_bytes");
  private static final MethodHandle ATTENTION_SCRATCH = NativeAbi.bind("tacho_attention_scratch");

  private NativeFunctions() {}

  /** A handle declares Throwable, but a C function throws nothing. */
  private static AssertionError impossible(Throwable e) {
    return new AssertionError("a native function threw", e);
  }

  static int weightPack(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) WEIGHT_PACK.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int activationPack(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) ACTIVATION_PACK.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int activationFormat(int isa, int dtype, MemorySegment format) {
    try {
      return (int) ACTIVATION_FORMAT.invokeExact(isa, dtype, format);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int activationBytes(int isa, int format, long k, MemorySegment bytes) {
    try {
      return (int) ACTIVATION_BYTES.invokeExact(isa, format, k, bytes);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int matmul(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) MATMUL.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int embeddingLookup(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) EMBEDDING_LOOKUP.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int rmsNorm(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) RMS_NORM.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int rope(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) ROPE.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int kvWrite(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) KV_WRITE.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int attention(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) ATTENTION.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int kvCopyBlocks(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) KV_COPY_BLOCKS.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int siluMul(MemorySegment params, long begin, long end, MemorySegment counters) {
    try {
      return (int) SILU_MUL.invokeExact(params, begin, end, counters);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int buildInfo(MemorySegment buffer, long capacityBytes) {
    try {
      return (int) BUILD_INFO.invokeExact(buffer, capacityBytes);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static MemorySegment statusString(int status) {
    try {
      return (MemorySegment) STATUS_STRING.invokeExact(status);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int lastError(MemorySegment buffer, long capacityBytes) {
    try {
      return (int) LAST_ERROR.invokeExact(buffer, capacityBytes);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int isaResolve(MemorySegment maxIsa, MemorySegment isa) {
    try {
      return (int) ISA_RESOLVE.invokeExact(maxIsa, isa);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int isaCheck(int isa) {
    try {
      return (int) ISA_CHECK.invokeExact(isa);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int memoryMap(long bytes, MemorySegment memory) {
    try {
      return (int) MEMORY_MAP.invokeExact(bytes, memory);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int memoryUnmap(MemorySegment memory, long bytes) {
    try {
      return (int) MEMORY_UNMAP.invokeExact(memory, bytes);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int weightBytes(int isa, int dtype, long n, long k, MemorySegment bytes) {
    try {
      return (int) WEIGHT_BYTES.invokeExact(isa, dtype, n, k, bytes);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }

  static int attentionScratch(int isa, int numHeads, int numKvHeads, int headDim, MemorySegment floats) {
    try {
      return (int) ATTENTION_SCRATCH.invokeExact(isa, numHeads, numKvHeads, headDim, floats);
    } catch (Throwable e) {
      throw impossible(e);
    }
  }
}
