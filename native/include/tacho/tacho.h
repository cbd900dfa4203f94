/*
 * The C ABI of Tacho's kernels: the only header that others see.
 *
 * Plain C. Types are int32_t, int64_t, uint32_t, float, double and pointers; no enum, bool, size_t, long, bitfield or
 * struct by value, so that the Java bindings can be compared with this file member by member (tests/abi).
 *
 * Every kernel has one shape:
 *
 *     int32_t tacho_<operation>(const tacho_<operation>_params* params, int64_t begin, int64_t end,
 *                               tacho_counters* counters);
 *
 * - [begin, end) is a range of the operation's work items, said at each operation. The caller splits the items among
 *   its threads; a kernel never starts a thread, never allocates, never blocks.
 * - Disjoint ranges may run at the same time. Which range an item lies in never changes its result.
 * - `params` is read only. `struct_size` must be sizeof the struct, `isa` one of TACHO_ISA_*.
 * - `counters` is the calling thread's own line (or NULL): the work of [begin, end), computed from the shapes, is added
 *   to it.
 * - The result is a status: TACHO_OK or what was wrong; tacho_last_error has the words. After a refusal nothing has
 *   been written. No C++ exception crosses.
 * - Floats are row-major. `ld...` is the distance of two rows in elements. Pointers need the alignment of their
 *   element only. Sizes are in elements unless the name ends in _bytes, and below 2^31. A head_dim of a KV cache is
 *   even and at most 512.
 */
#ifndef TACHO_TACHO_H
#define TACHO_TACHO_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TACHO_API __attribute__((visibility("default")))

/* Raised with every change that breaks a caller built against an older header. */
#define TACHO_ABI_VERSION 3

/* Status. */
#define TACHO_OK 0
#define TACHO_EINVAL 1       /* an argument is outside its contract */
#define TACHO_EUNSUPPORTED 2 /* a dtype, head size or instruction set that this build or CPU lacks */
#define TACHO_EINTERNAL 3    /* a fault of the library or of a device */

/* Instruction sets; AUTO is the best one that the CPU has and TACHO_MAX_ISA allows. */
#define TACHO_ISA_AUTO 0
#define TACHO_ISA_SCALAR 1
#define TACHO_ISA_AVX2 2   /* AVX2, FMA, F16C */
#define TACHO_ISA_AVX512 3 /* AVX-512 F, BW, VL, DQ */
#define TACHO_ISA_AVX512_VNNI 4
#define TACHO_ISA_AVX512_BF16 5 /* VNNI too */
#define TACHO_ISA_AMX 6 /* AMX tiles, int8 and BF16; AVX-512 VNNI and BF16 too */

/* Element types, with GGUF's numbers. A Q8_0 block is 34 bytes (f16 scale, 32 int8), a Q4_0 block 18 bytes
 * (f16 scale, 16 bytes: low nibbles elements 0..15, high nibbles 16..31, value = (nibble - 8) * scale). A Q4_K block is
 * 144 bytes for 256 elements (4 bits, scale and minimum of 6 bits for 32), a Q6_K block 210 (6 bits, scale of 8 bits
 * for 16). */
#define TACHO_DTYPE_F32 0
#define TACHO_DTYPE_F16 1
#define TACHO_DTYPE_Q4_0 2
#define TACHO_DTYPE_Q8_0 8
#define TACHO_DTYPE_Q4_K 12
#define TACHO_DTYPE_Q6_K 14
#define TACHO_DTYPE_BF16 30

/* Forms in which a matmul reads a row of k activations. INT8: first k / 32 blocks of 56 bytes, each of which begins
 * with 32 int8 codes and their float scale; the rest of a block, and of the row, is the instruction set's own. */
#define TACHO_ACTIVATION_F32 0
#define TACHO_ACTIVATION_INT8 1
#define TACHO_ACTIVATION_BF16 2

/* Tokens of a KV block. */
#define TACHO_KV_BLOCK_TOKENS 16

/* Keys of a split of attention: a sequence's keys are cut at multiples of it. */
#define TACHO_ATTENTION_SPLIT_KEYS 512

/* Rope pairings: which two elements of a head turn together. */
#define TACHO_ROPE_ADJACENT 0 /* (2i, 2i + 1), GGUF's Llama */
#define TACHO_ROPE_HALVES 1   /* (i, i + rope_dim / 2), NeoX and Hugging Face */

/* One cache line: the work done by one thread on one operation. Single writer. Bytes are those of the operands once,
 * as if from memory; flops count a multiply-add as two. `nanos` is left to the caller. */
typedef struct tacho_counters {
    int64_t calls;
    int64_t flops;
    int64_t read_bytes;
    int64_t write_bytes;
    int64_t nanos;
    int64_t reserved[3];
} tacho_counters;

/* ---- the library ------------------------------------------------------------------------------------------------ */

/* TACHO_ABI_VERSION of the library, to be compared before anything else is called. */
TACHO_API int32_t tacho_abi_version(void);

/* Writes "tacho <version>, <compiler>, isa: scalar avx2 ..., glibc <version>" into buffer[capacity_bytes], ended
 * by 0, cut if too long: the instruction sets that are built in, the glibc that the library is content with. */
TACHO_API int32_t tacho_build_info(char* buffer, int64_t capacity_bytes);

/* Static text of a status, never NULL. */
TACHO_API const char* tacho_status_string(int32_t status);

/* Detail of this thread's last failed call, "" if none; written as tacho_build_info does. */
TACHO_API int32_t tacho_last_error(char* buffer, int64_t capacity_bytes);

/* Resolves a limit to an instruction set of this CPU: `max_isa` is "scalar", "avx2", "avx512", "avx512_vnni",
 * "avx512_bf16", "amx", or NULL or "" for no limit. An unknown word is TACHO_EINVAL; a known one that the CPU lacks gives
 * the best below it. */
TACHO_API int32_t tacho_isa_resolve(const char* max_isa, int32_t* isa);

/* TACHO_OK if kernels of `isa` can run here, else TACHO_EUNSUPPORTED with the missing CPU features in the detail. */
TACHO_API int32_t tacho_isa_check(int32_t isa);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Maps `bytes` zeros that no file backs, aligned to 64 bytes, from 2 MiB on to 2 MiB; these are asked for in huge pages,
 * which spare a decode most of its address translations. TACHO_EINTERNAL if the system has no such memory. */
TACHO_API int32_t tacho_memory_map(int64_t bytes, void** memory);

/* Gives back what tacho_memory_map gave for as many bytes. */
TACHO_API int32_t tacho_memory_unmap(void* memory, int64_t bytes);

/* ---- weights: a matrix [n][k] in the layout that matmul wants ---------------------------------------------------- */

/* Bytes of a packed [n][k] matrix, whose layout depends on both. k must be a multiple of the dtype's block (32 for Q8_0 and Q4_0, 256 for Q4_K
 * and Q6_K). */
TACHO_API int32_t tacho_weight_bytes(int32_t isa, int32_t dtype, int64_t n, int64_t k, int64_t* bytes);

/* Packs rows of a matrix as it lies in a GGUF file. Items: groups of 16 rows. */
typedef struct tacho_weight_pack_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t dtype;
    int32_t reserved;
    int64_t n;
    int64_t k;
    const void* source; /* [n][k] in file layout */
    void* packed;       /* tacho_weight_bytes */
} tacho_weight_pack_params;
TACHO_API int32_t tacho_weight_pack(const tacho_weight_pack_params* params, int64_t begin, int64_t end,
                                    tacho_counters* counters);

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* The form in which a matmul with weights of `dtype` reads activations: TACHO_ACTIVATION_F32 for F32 and F16, INT8 for
 * the quantised types, for BF16 whichever the instruction set multiplies. */
TACHO_API int32_t tacho_activation_format(int32_t isa, int32_t dtype, int32_t* format);

/* Bytes of a row of k activations in a form; for INT8 k is a multiple of 32. */
TACHO_API int32_t tacho_activation_bytes(int32_t isa, int32_t format, int64_t k, int64_t* bytes);

/* Writes rows of activations in the form that matmul reads, once for all matmuls that read them. INT8: for each 32
 * elements scale = max|x| / 127 and codes x * (127 / max|x|) rounded to nearest even; blocks with max|x| < 2^-119 are 0,
 * a block with an element that is not finite has a NaN for its scale, so that all products with the row are NaN.
 * Items: blocks of 32 columns, ceil(k / 32). */
typedef struct tacho_activation_pack_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t format;
    int32_t reserved;
    int64_t m;
    int64_t k;
    int64_t ldx;
    int64_t row_bytes; /* distance of packed rows, at least tacho_activation_bytes */
    const float* x;    /* [m][ldx] */
    void* packed;      /* [m][row_bytes] */
} tacho_activation_pack_params;
TACHO_API int32_t tacho_activation_pack(const tacho_activation_pack_params* params, int64_t begin, int64_t end,
                                        tacho_counters* counters);

/* y[m][n] = sum_k x[m][k] * w[n][k] (+ bias[n]) (+ y[m][n]). Items: groups of 16 columns of y (rows of w), ceil(n / 16).
 * An element of y is summed in the same order whatever m is. */
typedef struct tacho_matmul_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t dtype;      /* of w */
    int32_t accumulate; /* 1: the product is added to y; 0: y is written only */
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t x_row_bytes; /* distance of rows of x, at least tacho_activation_bytes */
    int64_t ldy;
    const void* x;     /* [m][x_row_bytes], in the form of tacho_activation_format */
    const void* w;     /* packed [n][k] */
    const float* bias; /* [n] or NULL */
    float* y;          /* [m][ldy] */
} tacho_matmul_params;
TACHO_API int32_t tacho_matmul(const tacho_matmul_params* params, int64_t begin, int64_t end, tacho_counters* counters);

/* y[i][k] = row ids[i] of a packed [n][k] matrix, as floats. Items: rows of y. */
typedef struct tacho_embedding_lookup_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t dtype;
    int32_t reserved;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t ldy;
    const int32_t* ids; /* [m], each in [0, n) */
    const void* w;      /* packed [n][k] */
    float* y;           /* [m][ldy] */
} tacho_embedding_lookup_params;
TACHO_API int32_t tacho_embedding_lookup(const tacho_embedding_lookup_params* params, int64_t begin, int64_t end,
                                         tacho_counters* counters);

/* y[i][j] = x[i][j] / sqrt(mean_j x[i][j]^2 + epsilon) * weight[j], written in a form of activations (F32: plain
 * floats; then y may be x). Items: rows. */
typedef struct tacho_rms_norm_params {
    uint32_t struct_size;
    int32_t isa;
    int64_t m;
    int64_t n;
    int64_t ldx;
    int64_t y_row_bytes;
    const float* x;      /* [m][ldx] */
    const float* weight; /* [n] */
    void* y;             /* [m][y_row_bytes] */
    float epsilon;
    int32_t format;
} tacho_rms_norm_params;
TACHO_API int32_t tacho_rms_norm(const tacho_rms_norm_params* params, int64_t begin, int64_t end,
                                 tacho_counters* counters);

/* Turns the pairs (a, b) of the first rope_dim elements of each head, in place:
 * (a cos - b sin, a sin + b cos) with (cos, sin) = cos_sin[token][pair]. Items: tokens. */
typedef struct tacho_rope_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t pairing; /* TACHO_ROPE_* */
    int32_t num_heads;
    int32_t head_dim;
    int32_t rope_dim; /* even, <= head_dim */
    int64_t num_tokens;
    int64_t ldx;
    const float* cos_sin; /* [num_tokens][rope_dim / 2][2] */
    float* x;             /* [num_tokens][ldx], the heads of a token side by side */
} tacho_rope_params;
TACHO_API int32_t tacho_rope(const tacho_rope_params* params, int64_t begin, int64_t end, tacho_counters* counters);

/* Writes K and V rows of tokens into their slots of one layer's cache. slot = block * 16 + position % 16; -1 is
 * skipped.
 *   k_cache [num_blocks][num_kv_heads][head_dim][16]    v_cache [num_blocks][num_kv_heads][16][head_dim]
 * In Q8_0 each [head_dim][16] or [16][head_dim] of int8 codes is preceded by f16 scales [ceil(head_dim / 32)][16]; a
 * scale, m / 127 with m the largest magnitude, is that of 32 neighbouring elements of one token (of the rest of the
 * head, in the last group), a code the nearest integer to element / scale, ties to even. Where m / 127 is not below
 * 65520 (an infinity or NaN among the elements) the scale is NaN, where it is 0 as f16 the codes are 0.
 * Items: kv heads. */
typedef struct tacho_kv_write_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t kv_dtype; /* F32, F16, BF16 or Q8_0 */
    int32_t num_kv_heads;
    int32_t head_dim;
    int32_t reserved;
    int64_t num_tokens;
    int64_t num_blocks;
    int64_t ldk;
    int64_t ldv;
    const int64_t* slots; /* [num_tokens] */
    const float* k;       /* [num_tokens][ldk] */
    const float* v;       /* [num_tokens][ldv] */
    void* k_cache;
    void* v_cache;
} tacho_kv_write_params;
TACHO_API int32_t tacho_kv_write(const tacho_kv_write_params* params, int64_t begin, int64_t end,
                                 tacho_counters* counters);

/* One work item of attention: queries [q_begin, q_end) of one sequence (counted from its first query in this batch)
 * with the query heads of one kv head, against the keys [split_begin * 512, split_end * 512) of the sequence.
 *
 * A tile (queries and kv head) is one item, with partial = -1, split_begin = 0 and split_end = splits, where splits is
 * the position of its last query / 512 + 1; or it is several items which share [0, splits) among them. Then each leaves
 * what it has gathered in its own rows of `partials`, and the one that comes last, on whatever thread, merges them in
 * ascending order and writes `out`. The bits are the same either way. */
typedef struct tacho_attention_item {
    int32_t sequence;
    int32_t kv_head;
    int32_t q_begin;
    int32_t q_end;
    int32_t split_begin;
    int32_t split_end;
    int32_t partial; /* the tile's first row in partials, which has room for [splits][q_end - q_begin][query heads] */
    int32_t ticket;  /* the tile's number in tickets; not read where partial is -1 */
} tacho_attention_item;

/* Causal attention of a batch in which prefill chunks and decodes are mixed, over paged KV.
 * Query i of sequence s stands at position p = context_lens[s] - (q_starts[s + 1] - q_starts[s]) + i and sees keys
 * max(0, p - window + 1) .. p (window 0: from 0). Keys are met in ascending order in the blocks of the table; slots
 * past p are never read. score = (q . k) * scale, then softcap * tanh(score / softcap) if softcap > 0; a sink adds
 * exp(sink) to the sum only. Items: entries of `items`. */
typedef struct tacho_attention_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t kv_dtype;
    int32_t num_heads; /* a multiple of num_kv_heads; head h reads kv head h / (num_heads / num_kv_heads) */
    int32_t num_kv_heads;
    int32_t head_dim;
    int32_t window;
    int32_t reserved;
    float scale;
    float softcap;
    int64_t num_sequences;
    int64_t num_items;
    int64_t num_blocks;
    int64_t ldq;
    int64_t ldo;
    int64_t block_table_stride;
    const int32_t* q_starts;     /* [num_sequences + 1], rows of q */
    const int32_t* context_lens; /* [num_sequences], this step's tokens included */
    const int32_t* block_table;  /* [num_sequences][block_table_stride], block numbers */
    const tacho_attention_item* items;
    const float* q; /* [q_starts[num_sequences]][ldq], heads side by side */
    const void* k_cache;
    const void* v_cache;
    const float* sinks; /* [num_heads] or NULL */
    float* out;         /* [..][ldo], heads side by side */
    float* scratch;     /* this call's own: scratch_floats floats */
    int64_t scratch_floats;
    float* partials; /* [num_partials][head_dim rounded up to 16, + 16]; may be NULL where num_partials is 0 */
    int64_t num_partials;
    int32_t* tickets; /* [num_tickets], all 0 before the first item of a tile and again after its last */
    int64_t num_tickets;
} tacho_attention_params;
TACHO_API int32_t tacho_attention(const tacho_attention_params* params, int64_t begin, int64_t end,
                                  tacho_counters* counters);

/* Floats of scratch that attention needs for one call with these sizes. */
TACHO_API int32_t tacho_attention_scratch(int32_t isa, int32_t num_heads, int32_t num_kv_heads, int32_t head_dim,
                                          int64_t* floats);

/* Copies KV blocks within each of several caches (K and V of every layer): block pairs[2i] to block pairs[2i + 1].
 * No destination may be a source or a destination of another pair. Items: num_caches * num_pairs, pair fastest. */
typedef struct tacho_kv_copy_blocks_params {
    uint32_t struct_size;
    int32_t isa;
    int64_t num_caches;
    int64_t num_pairs;
    int64_t num_blocks;
    int64_t block_bytes;
    void* const* caches;  /* [num_caches], each [num_blocks][block_bytes] */
    const int64_t* pairs; /* [num_pairs][2] */
} tacho_kv_copy_blocks_params;
TACHO_API int32_t tacho_kv_copy_blocks(const tacho_kv_copy_blocks_params* params, int64_t begin, int64_t end,
                                       tacho_counters* counters);

/* y[i][j] = gate[i][j] / (1 + exp(-gate[i][j])) * up[i][j], written in a form of activations (F32: plain floats; then y
 * may be gate or up). Items: blocks of 32 columns, ceil(n / 32). */
typedef struct tacho_silu_mul_params {
    uint32_t struct_size;
    int32_t isa;
    int32_t format;
    int32_t reserved;
    int64_t m;
    int64_t n;
    int64_t ld_gate;
    int64_t ld_up;
    int64_t y_row_bytes;
    const float* gate; /* [m][ld_gate] */
    const float* up;   /* [m][ld_up] */
    void* y;           /* [m][y_row_bytes] */
} tacho_silu_mul_params;
TACHO_API int32_t tacho_silu_mul(const tacho_silu_mul_params* params, int64_t begin, int64_t end,
                                 tacho_counters* counters);

#ifdef __cplusplus
}
#endif

#endif
