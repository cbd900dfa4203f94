/*
 * The work of a kernel call, computed from its shapes: what tacho_counters are raised by.
 *
 * Neutral of the backend: every provider (scalar, vector, native, cuda) counts by this table, so that their counters
 * are equal to the last unit. Bytes are those of the operands once, results once, as if from memory; a multiply-add is
 * two flops; exp, division and square root are one where they are named. Comparisons, index arithmetic, dequantising
 * and the reading of index arrays (ids, slots, tables, pairs, items) are not counted.
 *
 *   R   rows in [begin, end) where items are rows or tokens
 *   C   weight rows in [begin, end) where items are groups of 16: min(n, 16 end) - 16 begin
 *   row file bytes of k elements of the weight's dtype (F32 4 k, F16 and BF16 2 k, Q8_0 34 k / 32, Q4_0 18 k / 32,
 *       Q4_K 144 k / 256, Q6_K 210 k / 256)
 *   h   bytes of a token's K or V of one head (F32 4 head_dim, F16 and BF16 2 head_dim,
 *       Q8_0 head_dim + 2 ceil(head_dim / 32))
 *
 *   operation         flops                        read_bytes                              write_bytes
 *   weight_pack       0                            C row                                   C row
 *   embedding_lookup  0                            R row                                   4 R k
 *   activation_pack   0                            4 m B                                   4 m B
 *   matmul            2 m C k (bias not counted)   C row + 4 m k                           4 m C
 *   rms_norm          4 R n                        4 R n + 4 n                             4 R n
 *   rope              3 R num_heads rope_dim       4 R (num_heads + 1) rope_dim            4 R num_heads rope_dim
 *   kv_write          0                            8 T H head_dim                          2 T H h
 *   attention         4 head_dim G sum visible(q)  2 U h + 4 Q G head_dim                  4 Q G head_dim
 *   kv_copy_blocks    0                            items block_bytes                       items block_bytes
 *   silu_mul          5 m B                        8 m B                                   4 m B
 *
 * kv_write: H kv heads in the range, T tokens whose slot is not -1. attention, summed over the items: Q queries (0 for
 * an item that does not begin with its tile's first split: a tile's queries and results count once), G query heads a kv
 * head, visible(q) = keys of the item's splits that query q sees (window taken into account), U = those that at least
 * one query of the item sees.
 *
 * Activations are counted as floats, whatever their form. activation_pack and silu_mul: B columns of the
 * range, min(k, 32 end) - 32 begin. A matmul that accumulates has m C flops and reads 4 m C bytes more.
 *
 * matmul reads x and rms_norm the weight once a call, however small the range. An empty range adds nothing, not even a
 * call; neither does an operation with no rows at all (m = 0, num_tokens = 0).
 */
#ifndef TACHO_CORE_FLOP_COUNTERS_H
#define TACHO_CORE_FLOP_COUNTERS_H

#include <cstdint>

#include "tacho/tacho.h"

namespace tacho {

/* Work of one call. */
struct Work {
    int64_t flops;
    int64_t read_bytes;
    int64_t write_bytes;
};

/* Bytes of k elements as they lie in a file; 0 for an unknown dtype. */
int64_t file_row_bytes(int32_t dtype, int64_t k);

/* Arguments are checked ones; [begin, end) is not empty. */
Work work_of(const tacho_weight_pack_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_embedding_lookup_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_activation_pack_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_matmul_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_rms_norm_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_rope_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_kv_write_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_attention_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_kv_copy_blocks_params& p, int64_t begin, int64_t end);
Work work_of(const tacho_silu_mul_params& p, int64_t begin, int64_t end);

}  // namespace tacho

#endif
