package dev.tacho.engine.kernel.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.Map;

/**
 * The functions and constants of {@code tacho.h} as Java sees them; {@link NativeStructs} has the structs. A test
 * compares every one with what the C++ compiler printed into {@code abi.properties}. Needs no library.
 */
final class NativeAbi {
  static final int ABI_VERSION = 3;

  static final int OK = 0;
  static final int EINVAL = 1;
  static final int EUNSUPPORTED = 2;
  static final int EINTERNAL = 3;

  static final int ISA_AUTO = 0;
  static final int ISA_SCALAR = 1;
  static final int ISA_AVX2 = 2;
  static final int ISA_AVX512 = 3;
  static final int ISA_AVX512_VNNI = 4;
  static final int ISA_AVX512_BF16 = 5;
  static final int ISA_AMX = 6;

  static final int ROPE_ADJACENT = 0;
  static final int ROPE_HALVES = 1;

  /** {@code int32_t (const params*, int64_t begin, int64_t end, tacho_counters*)}. */
  private static final FunctionDescriptor KERNEL =
      FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG, ADDRESS);

  /** {@code int32_t (char* buffer, int64_t capacity_bytes)}. */
  private static final FunctionDescriptor TEXT = FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG);

  static final Map<String, FunctionDescriptor> FUNCTIONS =
      Map.ofEntries(
          Map.entry("tacho_abi_version", FunctionDescriptor.of(JAVA_INT)),
          Map.entry("tacho_build_info", TEXT),
          Map.entry("tacho_status_string", FunctionDescriptor.of(ADDRESS, JAVA_INT)),
          Map.entry("tacho_last_error", TEXT),
          Map.entry("tacho_isa_resolve", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS)),
          Map.entry("tacho_isa_check", FunctionDescriptor.of(JAVA_INT, JAVA_INT)),
          Map.entry("tacho_memory_map", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS)),
          Map.entry("tacho_memory_unmap", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG)),
          Map.entry(
              "tacho_weight_bytes",
              FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS)),
          Map.entry("tacho_activation_format", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS)),
          Map.entry(
              "tacho_activation_bytes",
              FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS)),
          Map.entry(
              "tacho_attention_scratch",
              FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS)),
          Map.entry("tacho_weight_pack", KERNEL),
          Map.entry("tacho_activation_pack", KERNEL),
          Map.entry("tacho_matmul", KERNEL),
          Map.entry("tacho_embedding_lookup", KERNEL),
          Map.entry("tacho_rms_norm", KERNEL),
          Map.entry("tacho_rope", KERNEL),
          Map.entry("tacho_kv_write", KERNEL),
          Map.entry("tacho_attention", KERNEL),
          Map.entry("tacho_kv_copy_blocks", KERNEL),
          Map.entry("tacho_silu_mul", KERNEL));

  private NativeAbi() {}

  /**
   * The handle of a function of the loaded library.
   *
   * @throws UnsatisfiedLinkError if the library has no such function
   */
  static MethodHandle bind(String name) {
    FunctionDescriptor descriptor = FUNCTIONS.get(name);
    if (descriptor == null) {
      throw new IllegalArgumentException("no descriptor for " + name);
    }
    MemorySegment symbol =
        SymbolLookup.loaderLookup()
            .find(name)
            .orElseThrow(() -> new UnsatisfiedLinkError("the loaded library has no function " + name));
    return Linker.nativeLinker().downcallHandle(symbol, descriptor);
  }

  /** Text that C owns and ends with 0, of at most {@code maxBytes}. */
  static String text(MemorySegment pointer, long maxBytes) {
    return pointer.reinterpret(maxBytes).getString(0);
  }
}
