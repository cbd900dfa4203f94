package dev.tacho.engine.kernel.ffm;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tacho.engine.kernel.KernelWorker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemoryLayout.PathElement;
import java.lang.foreign.StructLayout;

/**
 * The structs of {@code tacho.h}: one nested class each, with the layout and the byte offsets of its members, so that a
 * member is written with a plain {@code segment.set(layout, OFFSET, value)}. A test compares every member with what the
 * C++ compiler printed. Needs no library.
 */
final class NativeStructs {
  /** Every params struct begins with its own size. */
  static final long STRUCT_SIZE = 0;

  /** Every params struct names its instruction set next. */
  static final long ISA = 4;

  static final StructLayout COUNTERS =
      struct(
          "tacho_counters",
          JAVA_LONG.withName("calls"),
          JAVA_LONG.withName("flops"),
          JAVA_LONG.withName("read_bytes"),
          JAVA_LONG.withName("write_bytes"),
          JAVA_LONG.withName("nanos"),
          MemoryLayout.sequenceLayout(3, JAVA_LONG).withName("reserved"));

  static final StructLayout ATTENTION_ITEM =
      struct(
          "tacho_attention_item",
          JAVA_INT.withName("sequence"),
          JAVA_INT.withName("kv_head"),
          JAVA_INT.withName("q_begin"),
          JAVA_INT.withName("q_end"),
          JAVA_INT.withName("split_begin"),
          JAVA_INT.withName("split_end"),
          JAVA_INT.withName("partial"),
          JAVA_INT.withName("ticket"));

  private NativeStructs() {}

  private static StructLayout struct(String name, MemoryLayout... members) {
    StructLayout layout = MemoryLayout.structLayout(members).withName(name);
    if (layout.byteSize() > KernelWorker.PARAMS_BYTES) {
      throw new IllegalStateException(name + " does not fit into the worker's " + KernelWorker.PARAMS_BYTES + " bytes");
    }
    return layout;
  }

  private static long offset(StructLayout layout, String member) {
    return layout.byteOffset(PathElement.groupElement(member));
  }

  /** {@code tacho_weight_pack_params}. */
  static final class WeightPack {
    static final StructLayout LAYOUT =
        struct(
            "tacho_weight_pack_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("dtype"),
            JAVA_INT.withName("reserved"),
            JAVA_LONG.withName("n"),
            JAVA_LONG.withName("k"),
            ADDRESS.withName("source"),
            ADDRESS.withName("packed"));
    static final long DTYPE = offset(LAYOUT, "dtype");
    static final long RESERVED = offset(LAYOUT, "reserved");
    static final long N = offset(LAYOUT, "n");
    static final long K = offset(LAYOUT, "k");
    static final long SOURCE = offset(LAYOUT, "source");
    static final long PACKED = offset(LAYOUT, "packed");

    private WeightPack() {}
  }

  /** {@code tacho_activation_pack_params}. */
  static final class ActivationPack {
    static final StructLayout LAYOUT =
        struct(
            "tacho_activation_pack_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("format"),
            JAVA_INT.withName("reserved"),
            JAVA_LONG.withName("m"),
            JAVA_LONG.withName("k"),
            JAVA_LONG.withName("ldx"),
            JAVA_LONG.withName("row_bytes"),
            ADDRESS.withName("x"),
            ADDRESS.withName("packed"));
    static final long FORMAT = offset(LAYOUT, "format");
    static final long RESERVED = offset(LAYOUT, "reserved");
    static final long M = offset(LAYOUT, "m");
    static final long K = offset(LAYOUT, "k");
    static final long LDX = offset(LAYOUT, "ldx");
    static final long ROW_BYTES = offset(LAYOUT, "row_bytes");
    static final long X = offset(LAYOUT, "x");
    static final long PACKED = offset(LAYOUT, "packed");

    private ActivationPack() {}
  }

  /** {@code tacho_matmul_params}. */
  static final class Matmul {
    static final StructLayout LAYOUT =
        struct(
            "tacho_matmul_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("dtype"),
            JAVA_INT.withName("accumulate"),
            JAVA_LONG.withName("m"),
            JAVA_LONG.withName("n"),
            JAVA_LONG.withName("k"),
            JAVA_LONG.withName("x_row_bytes"),
            JAVA_LONG.withName("ldy"),
            ADDRESS.withName("x"),
            ADDRESS.withName("w"),
            ADDRESS.withName("bias"),
            ADDRESS.withName("y"));
    static final long DTYPE = offset(LAYOUT, "dtype");
    static final long ACCUMULATE = offset(LAYOUT, "accumulate");
    static final long M = offset(LAYOUT, "m");
    static final long N = offset(LAYOUT, "n");
    static final long K = offset(LAYOUT, "k");
    static final long X_ROW_BYTES = offset(LAYOUT, "x_row_bytes");
    static final long LDY = offset(LAYOUT, "ldy");
    static final long X = offset(LAYOUT, "x");
    static final long W = offset(LAYOUT, "w");
    static final long BIAS = offset(LAYOUT, "bias");
    static final long Y = offset(LAYOUT, "y");

    private Matmul() {}
  }

  /** {@code tacho_embedding_lookup_params}. */
  static final class EmbeddingLookup {
    static final StructLayout LAYOUT =
        struct(
            "tacho_embedding_lookup_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("dtype"),
            JAVA_INT.withName("reserved"),
            JAVA_LONG.withName("m"),
            JAVA_LONG.withName("n"),
            JAVA_LONG.withName("k"),
            JAVA_LONG.withName("ldy"),
            ADDRESS.withName("ids"),
            ADDRESS.withName("w"),
            ADDRESS.withName("y"));
    static final long DTYPE = offset(LAYOUT, "dtype");
    static final long RESERVED = offset(LAYOUT, "reserved");
    static final long M = offset(LAYOUT, "m");
    static final long N = offset(LAYOUT, "n");
    static final long K = offset(LAYOUT, "k");
    static final long LDY = offset(LAYOUT, "ldy");
    static final long IDS = offset(LAYOUT, "ids");
    static final long W = offset(LAYOUT, "w");
    static final long Y = offset(LAYOUT, "y");

    private EmbeddingLookup() {}
  }

  /** {@code tacho_rms_norm_params}. */
  static final class RmsNorm {
    static final StructLayout LAYOUT =
        struct(
            "tacho_rms_norm_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_LONG.withName("m"),
            JAVA_LONG.withName("n"),
            JAVA_LONG.withName("ldx"),
            JAVA_LONG.withName("y_row_bytes"),
            ADDRESS.withName("x"),
            ADDRESS.withName("weight"),
            ADDRESS.withName("y"),
            JAVA_FLOAT.withName("epsilon"),
            JAVA_INT.withName("format"));
    static final long M = offset(LAYOUT, "m");
    static final long N = offset(LAYOUT, "n");
    static final long LDX = offset(LAYOUT, "ldx");
    static final long Y_ROW_BYTES = offset(LAYOUT, "y_row_bytes");
    static final long X = offset(LAYOUT, "x");
    static final long WEIGHT = offset(LAYOUT, "weight");
    static final long Y = offset(LAYOUT, "y");
    static final long EPSILON = offset(LAYOUT, "epsilon");
    static final long FORMAT = offset(LAYOUT, "format");

    private RmsNorm() {}
  }

  /** {@code tacho_rope_params}. */
  static final class Rope {
    static final StructLayout LAYOUT =
        struct(
            "tacho_rope_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("pairing"),
            JAVA_INT.withName("num_heads"),
            JAVA_INT.withName("head_dim"),
            JAVA_INT.withName("rope_dim"),
            JAVA_LONG.withName("num_tokens"),
            JAVA_LONG.withName("ldx"),
            ADDRESS.withName("cos_sin"),
            ADDRESS.withName("x"));
    static final long PAIRING = offset(LAYOUT, "pairing");
    static final long NUM_HEADS = offset(LAYOUT, "num_heads");
    static final long HEAD_DIM = offset(LAYOUT, "head_dim");
    static final long ROPE_DIM = offset(LAYOUT, "rope_dim");
    static final long NUM_TOKENS = offset(LAYOUT, "num_tokens");
    static final long LDX = offset(LAYOUT, "ldx");
    static final long COS_SIN = offset(LAYOUT, "cos_sin");
    static final long X = offset(LAYOUT, "x");

    private Rope() {}
  }

  /** {@code tacho_kv_write_params}. */
  static final class KvWrite {
    static final StructLayout LAYOUT =
        struct(
            "tacho_kv_write_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("kv_dtype"),
            JAVA_INT.withName("num_kv_heads"),
            JAVA_INT.withName("head_dim"),
            JAVA_INT.withName("reserved"),
            JAVA_LONG.withName("num_tokens"),
            JAVA_LONG.withName("num_blocks"),
            JAVA_LONG.withName("ldk"),
            JAVA_LONG.withName("ldv"),
            ADDRESS.withName("slots"),
            ADDRESS.withName("k"),
            ADDRESS.withName("v"),
            ADDRESS.withName("k_cache"),
            ADDRESS.withName("v_cache"));
    static final long KV_DTYPE = offset(LAYOUT, "kv_dtype");
    static final long NUM_KV_HEADS = offset(LAYOUT, "num_kv_heads");
    static final long HEAD_DIM = offset(LAYOUT, "head_dim");
    static final long RESERVED = offset(LAYOUT, "reserved");
    static final long NUM_TOKENS = offset(LAYOUT, "num_tokens");
    static final long NUM_BLOCKS = offset(LAYOUT, "num_blocks");
    static final long LDK = offset(LAYOUT, "ldk");
    static final long LDV = offset(LAYOUT, "ldv");
    static final long SLOTS = offset(LAYOUT, "slots");
    static final long K = offset(LAYOUT, "k");
    static final long V = offset(LAYOUT, "v");
    static final long K_CACHE = offset(LAYOUT, "k_cache");
    static final long V_CACHE = offset(LAYOUT, "v_cache");

    private KvWrite() {}
  }

  /** {@code tacho_attention_params}. */
  static final class Attention {
    static final StructLayout LAYOUT =
        struct(
            "tacho_attention_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("kv_dtype"),
            JAVA_INT.withName("num_heads"),
            JAVA_INT.withName("num_kv_heads"),
            JAVA_INT.withName("head_dim"),
            JAVA_INT.withName("window"),
            JAVA_INT.withName("reserved"),
            JAVA_FLOAT.withName("scale"),
            JAVA_FLOAT.withName("softcap"),
            JAVA_LONG.withName("num_sequences"),
            JAVA_LONG.withName("num_items"),
            JAVA_LONG.withName("num_blocks"),
            JAVA_LONG.withName("ldq"),
            JAVA_LONG.withName("ldo"),
            JAVA_LONG.withName("block_table_stride"),
            ADDRESS.withName("q_starts"),
            ADDRESS.withName("context_lens"),
            ADDRESS.withName("block_table"),
            ADDRESS.withName("items"),
            ADDRESS.withName("q"),
            ADDRESS.withName("k_cache"),
            ADDRESS.withName("v_cache"),
            ADDRESS.withName("sinks"),
            ADDRESS.withName("out"),
            ADDRESS.withName("scratch"),
            JAVA_LONG.withName("scratch_floats"),
            ADDRESS.withName("partials"),
            JAVA_LONG.withName("num_partials"),
            ADDRESS.withName("tickets"),
            JAVA_LONG.withName("num_tickets"));
    static final long KV_DTYPE = offset(LAYOUT, "kv_dtype");
    static final long NUM_HEADS = offset(LAYOUT, "num_heads");
    static final long NUM_KV_HEADS = offset(LAYOUT, "num_kv_heads");
    static final long HEAD_DIM = offset(LAYOUT, "head_dim");
    static final long WINDOW = offset(LAYOUT, "window");
    static final long RESERVED = offset(LAYOUT, "reserved");
    static final long SCALE = offset(LAYOUT, "scale");
    static final long SOFTCAP = offset(LAYOUT, "softcap");
    static final long NUM_SEQUENCES = offset(LAYOUT, "num_sequences");
    static final long NUM_ITEMS = offset(LAYOUT, "num_items");
    static final long NUM_BLOCKS = offset(LAYOUT, "num_blocks");
    static final long LDQ = offset(LAYOUT, "ldq");
    static final long LDO = offset(LAYOUT, "ldo");
    static final long BLOCK_TABLE_STRIDE = offset(LAYOUT, "block_table_stride");
    static final long Q_STARTS = offset(LAYOUT, "q_starts");
    static final long CONTEXT_LENS = offset(LAYOUT, "context_lens");
    static final long BLOCK_TABLE = offset(LAYOUT, "block_table");
    static final long ITEMS = offset(LAYOUT, "items");
    static final long Q = offset(LAYOUT, "q");
    static final long K_CACHE = offset(LAYOUT, "k_cache");
    static final long V_CACHE = offset(LAYOUT, "v_cache");
    static final long SINKS = offset(LAYOUT, "sinks");
    static final long OUT = offset(LAYOUT, "out");
    static final long SCRATCH = offset(LAYOUT, "scratch");
    static final long SCRATCH_FLOATS = offset(LAYOUT, "scratch_floats");
    static final long PARTIALS = offset(LAYOUT, "partials");
    static final long NUM_PARTIALS = offset(LAYOUT, "num_partials");
    static final long TICKETS = offset(LAYOUT, "tickets");
    static final long NUM_TICKETS = offset(LAYOUT, "num_tickets");

    private Attention() {}
  }

  /** {@code tacho_kv_copy_blocks_params}. */
  static final class KvCopyBlocks {
    static final StructLayout LAYOUT =
        struct(
            "tacho_kv_copy_blocks_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_LONG.withName("num_caches"),
            JAVA_LONG.withName("num_pairs"),
            JAVA_LONG.withName("num_blocks"),
            JAVA_LONG.withName("block_bytes"),
            ADDRESS.withName("caches"),
            ADDRESS.withName("pairs"));
    static final long NUM_CACHES = offset(LAYOUT, "num_caches");
    static final long NUM_PAIRS = offset(LAYOUT, "num_pairs");
    static final long NUM_BLOCKS = offset(LAYOUT, "num_blocks");
    static final long BLOCK_BYTES = offset(LAYOUT, "block_bytes");
    static final long CACHES = offset(LAYOUT, "caches");
    static final long PAIRS = offset(LAYOUT, "pairs");

    private KvCopyBlocks() {}
  }

  /** {@code tacho_silu_mul_params}. */
  static final class SiluMul {
    static final StructLayout LAYOUT =
        struct(
            "tacho_silu_mul_params",
            JAVA_INT.withName("struct_size"),
            JAVA_INT.withName("isa"),
            JAVA_INT.withName("format"),
            JAVA_INT.withName("reserved"),
            JAVA_LONG.withName("m"),
            JAVA_LONG.withName("n"),
            JAVA_LONG.withName("ld_gate"),
            JAVA_LONG.withName("ld_up"),
            JAVA_LONG.withName("y_row_bytes"),
            ADDRESS.withName("gate"),
            ADDRESS.withName("up"),
            ADDRESS.withName("y"));
    static final long FORMAT = offset(LAYOUT, "format");
    static final long RESERVED = offset(LAYOUT, "reserved");
    static final long M = offset(LAYOUT, "m");
    static final long N = offset(LAYOUT, "n");
    static final long LD_GATE = offset(LAYOUT, "ld_gate");
    static final long LD_UP = offset(LAYOUT, "ld_up");
    static final long Y_ROW_BYTES = offset(LAYOUT, "y_row_bytes");
    static final long GATE = offset(LAYOUT, "gate");
    static final long UP = offset(LAYOUT, "up");
    static final long Y = offset(LAYOUT, "y");

    private SiluMul() {}
  }
}
