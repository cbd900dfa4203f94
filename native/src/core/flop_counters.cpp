#include "core/flop_counters.h"

#include <algorithm>

#include "core/attention_cost.h"
#include "core/kv_layout.h"

namespace tacho {

namespace {

constexpr int64_t kGroup = 16;
constexpr int64_t kFloat = sizeof(float);

/* Rows in a range of groups of 16 rows. */
int64_t group_rows(int64_t n, int64_t begin, int64_t end) {
    return std::min(n, kGroup * end) - kGroup * begin;
}

/* Columns in a range of blocks of 32 columns. */
int64_t block_columns(int64_t n, int64_t begin, int64_t end) {
    return std::min(n, 32 * end) - 32 * begin;
}

}  // namespace

int64_t file_row_bytes(int32_t dtype, int64_t k) {
    switch (dtype) {
        case TACHO_DTYPE_F32:
            return k * 4;
        case TACHO_DTYPE_F16:
        case TACHO_DTYPE_BF16:
            return k * 2;
        case TACHO_DTYPE_Q8_0:
            return k / 32 * 34;
        case TACHO_DTYPE_Q4_0:
            return k / 32 * 18;
        case TACHO_DTYPE_Q4_K:
            return k / 256 * 144;
        case TACHO_DTYPE_Q6_K:
            return k / 256 * 210;
        default:
            return 0;
    }
}

Work work_of(const tacho_weight_pack_params& p, int64_t begin, int64_t end) {
    const int64_t bytes = group_rows(p.n, begin, end) * file_row_bytes(p.dtype, p.k);
    return {0, bytes, bytes};
}

Work work_of(const tacho_embedding_lookup_params& p, int64_t begin, int64_t end) {
    const int64_t rows = end - begin;
    return {0, rows * file_row_bytes(p.dtype, p.k), rows * p.k * kFloat};
}

Work work_of(const tacho_activation_pack_params& p, int64_t begin, int64_t end) {
    const int64_t bytes = p.m * block_columns(p.k, begin, end) * kFloat;
    return {0, bytes, bytes};
}

Work work_of(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    const int64_t columns = group_rows(p.n, begin, end);
    const int64_t added = p.accumulate * p.m * columns;
    return {2 * p.m * columns * p.k + added,
            columns * file_row_bytes(p.dtype, p.k) + (p.m * p.k + added) * kFloat, p.m * columns * kFloat};
}

Work work_of(const tacho_rms_norm_params& p, int64_t begin, int64_t end) {
    const int64_t elements = (end - begin) * p.n;
    return {4 * elements, (elements + p.n) * kFloat, elements * kFloat};
}

Work work_of(const tacho_rope_params& p, int64_t begin, int64_t end) {
    const int64_t angles = (end - begin) * p.rope_dim;
    const int64_t elements = angles * p.num_heads;
    return {3 * elements, (elements + angles) * kFloat, elements * kFloat};
}

Work work_of(const tacho_kv_write_params& p, int64_t begin, int64_t end) {
    const int64_t tokens = p.num_tokens - std::count(p.slots, p.slots + p.num_tokens, int64_t{-1});
    const int64_t heads = 2 * tokens * (end - begin);
    return {0, heads * p.head_dim * kFloat, heads * kv_head_bytes(p.kv_dtype, p.head_dim)};
}

Work work_of(const tacho_attention_params& p, int64_t begin, int64_t end) {
    const int64_t group = p.num_heads / p.num_kv_heads;
    const int64_t key_bytes = 2 * kv_head_bytes(p.kv_dtype, p.head_dim);
    Work work = {0, 0, 0};
    for (int64_t i = begin; i < end; ++i) {
        const tacho_attention_item& item = p.items[i];
        const AttentionCost cost = attention_cost(p, item);
        const int64_t rows = item.split_begin == 0 ? (item.q_end - item.q_begin) * group : 0;
        const int64_t row_bytes = rows * p.head_dim * kFloat;
        work.flops += 4 * p.head_dim * group * cost.visible_keys;
        work.read_bytes += cost.union_keys * key_bytes + row_bytes;
        work.write_bytes += row_bytes;
    }
    return work;
}

Work work_of(const tacho_kv_copy_blocks_params& p, int64_t begin, int64_t end) {
    const int64_t bytes = (end - begin) * p.block_bytes;
    return {0, bytes, bytes};
}

Work work_of(const tacho_silu_mul_params& p, int64_t begin, int64_t end) {
    const int64_t elements = p.m * block_columns(p.n, begin, end);
    return {5 * elements, 2 * elements * kFloat, elements * kFloat};
}

}  // namespace tacho
