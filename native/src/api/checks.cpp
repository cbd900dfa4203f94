#include "api/checks.h"

#include "api/argument_check.h"
#include "core/attention_cost.h"

namespace tacho {

namespace {

constexpr int64_t kGroup = 16;
constexpr int64_t kMaxHeadDim = 512;

int64_t groups(int64_t n) {
    return (n + kGroup - 1) / kGroup;
}

void check_weight(ArgumentCheck& check, int32_t dtype, int64_t n, int64_t k) {
    check.size("n", n, 1).size("k", k, 1).extent("n * k", n, k).weight_dtype(dtype, k);
}

/* A matrix of floats with rows of `columns` elements, `ld` apart. */
void check_rows(ArgumentCheck& check, const char* ld_name, int64_t ld, const char* columns_name, int64_t columns,
                const char* field, const float* data, int64_t rows) {
    check.row_distance(ld_name, ld, columns_name, columns).extent(field, rows, ld).pointer(field, data, rows > 0);
}

void check_head_sizes(ArgumentCheck& check, int64_t num_kv_heads, int64_t head_dim) {
    check.size("num_kv_heads", num_kv_heads, 1)
        .range("head_dim", head_dim, 2, kMaxHeadDim)
        .multiple("head_dim", head_dim, "2", 2);
}

void check_query_heads(ArgumentCheck& check, int64_t num_heads, int64_t num_kv_heads) {
    check.size("num_heads", num_heads, 1).multiple("num_heads", num_heads, "num_kv_heads", num_kv_heads);
}

/* The two caches of a layer. */
void check_caches(ArgumentCheck& check, int32_t dtype, int64_t num_blocks, int64_t num_kv_heads, int64_t head_dim,
                  const void* k_cache, const void* v_cache) {
    check.kv_dtype(dtype)
        .size("num_blocks", num_blocks, 1)
        .extent("num_blocks * bytes of a block", num_blocks, num_kv_heads * head_dim * TACHO_KV_BLOCK_TOKENS)
        .elements("k_cache", k_cache, dtype)
        .elements("v_cache", v_cache, dtype);
}

}  // namespace

int32_t check_weight_shape(const char* operation, int32_t dtype, int64_t n, int64_t k) {
    ArgumentCheck check(operation);
    check_weight(check, dtype, n, k);
    return check.status();
}

int32_t check_activation_shape(const char* operation, int32_t format, int64_t k) {
    ArgumentCheck check(operation);
    return check.size("k", k, 1).activation_format(format, "k", k).status();
}

int32_t check_heads(const char* operation, int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
    ArgumentCheck check(operation);
    check_head_sizes(check, num_kv_heads, head_dim);
    check_query_heads(check, num_heads, num_kv_heads);
    return check.status();
}

int32_t check_shape(const tacho_weight_pack_params& p, const KernelTable&) {
    ArgumentCheck check("weight_pack");
    check_weight(check, p.dtype, p.n, p.k);
    return check.rule(p.source != nullptr, "source is NULL").elements("packed", p.packed, p.dtype).status();
}

int64_t work_items(const tacho_weight_pack_params& p) {
    return groups(p.n);
}

int32_t check_shape(const tacho_activation_pack_params& p, const KernelTable& kernels) {
    ArgumentCheck check("activation_pack");
    check.size("m", p.m, 0).size("k", p.k, 1).activation_format(p.format, "k", p.k);
    check_rows(check, "ldx", p.ldx, "k", p.k, "x", p.x, p.m);
    if (check.ok()) {
        const int64_t bytes = kernels.activation_bytes(p.format, p.k);
        check.activation_rows("row_bytes", p.row_bytes, bytes, p.format, "packed", p.packed, p.m);
    }
    return check.status();
}

int64_t work_items(const tacho_activation_pack_params& p) {
    return (p.k + 31) / 32;
}

int32_t check_shape(const tacho_matmul_params& p, const KernelTable& kernels) {
    ArgumentCheck check("matmul");
    check_weight(check, p.dtype, p.n, p.k);
    check.size("m", p.m, 0).range("accumulate", p.accumulate, 0, 1);
    if (check.ok()) {
        const int32_t format = kernels.activation_format(p.dtype);
        const int64_t bytes = kernels.activation_bytes(format, p.k);
        check.activation_rows("x_row_bytes", p.x_row_bytes, bytes, format, "x", p.x, p.m);
    }
    check_rows(check, "ldy", p.ldy, "n", p.n, "y", p.y, p.m);
    return check.elements("w", p.w, p.dtype).pointer("bias", p.bias, false).status();
}

int64_t work_items(const tacho_matmul_params& p) {
    return groups(p.n);
}

int32_t check_shape(const tacho_embedding_lookup_params& p, const KernelTable&) {
    ArgumentCheck check("embedding_lookup");
    check_weight(check, p.dtype, p.n, p.k);
    check.size("m", p.m, 0);
    check_rows(check, "ldy", p.ldy, "k", p.k, "y", p.y, p.m);
    return check.elements("w", p.w, p.dtype).pointer("ids", p.ids, p.m > 0).status();
}

int64_t work_items(const tacho_embedding_lookup_params& p) {
    return p.m;
}

int32_t check_contents(const tacho_embedding_lookup_params& p, int64_t begin, int64_t end) {
    ArgumentCheck check("embedding_lookup");
    for (int64_t i = begin; i < end && check.ok(); ++i) {
        check.rule(p.ids[i] >= 0 && p.ids[i] < p.n, "ids[%lld] is %d, must be in [0, n = %lld)",
                   static_cast<long long>(i), p.ids[i], static_cast<long long>(p.n));
    }
    return check.status();
}

int32_t check_shape(const tacho_rms_norm_params& p, const KernelTable& kernels) {
    ArgumentCheck check("rms_norm");
    check.size("m", p.m, 0).size("n", p.n, 1).activation_format(p.format, "n", p.n);
    check_rows(check, "ldx", p.ldx, "n", p.n, "x", p.x, p.m);
    if (check.ok()) {
        const int64_t bytes = kernels.activation_bytes(p.format, p.n);
        check.activation_rows("y_row_bytes", p.y_row_bytes, bytes, p.format, "y", p.y, p.m);
    }
    return check.pointer("weight", p.weight).number("epsilon", p.epsilon, 0).status();
}

int64_t work_items(const tacho_rms_norm_params& p) {
    return p.m;
}

int32_t check_shape(const tacho_rope_params& p, const KernelTable&) {
    ArgumentCheck check("rope");
    check.range("pairing", p.pairing, TACHO_ROPE_ADJACENT, TACHO_ROPE_HALVES)
        .size("num_heads", p.num_heads, 1)
        .size("head_dim", p.head_dim, 1)
        .range("rope_dim", p.rope_dim, 0, p.head_dim)
        .multiple("rope_dim", p.rope_dim, "2", 2)
        .size("num_tokens", p.num_tokens, 0);
    check_rows(check, "ldx", p.ldx, "num_heads * head_dim", int64_t{p.num_heads} * p.head_dim, "x", p.x, p.num_tokens);
    return check.pointer("cos_sin", p.cos_sin, p.num_tokens > 0 && p.rope_dim > 0).status();
}

int64_t work_items(const tacho_rope_params& p) {
    return p.num_tokens;
}

int32_t check_shape(const tacho_kv_write_params& p, const KernelTable&) {
    ArgumentCheck check("kv_write");
    check_head_sizes(check, p.num_kv_heads, p.head_dim);
    check_caches(check, p.kv_dtype, p.num_blocks, p.num_kv_heads, p.head_dim, p.k_cache, p.v_cache);
    check.size("num_tokens", p.num_tokens, 0);
    const int64_t columns = int64_t{p.num_kv_heads} * p.head_dim;
    check_rows(check, "ldk", p.ldk, "num_kv_heads * head_dim", columns, "k", p.k, p.num_tokens);
    check_rows(check, "ldv", p.ldv, "num_kv_heads * head_dim", columns, "v", p.v, p.num_tokens);
    return check.pointer("slots", p.slots, p.num_tokens > 0).status();
}

int64_t work_items(const tacho_kv_write_params& p) {
    return p.num_kv_heads;
}

int32_t check_contents(const tacho_kv_write_params& p, int64_t, int64_t) {
    ArgumentCheck check("kv_write");
    const int64_t slots = p.num_blocks * TACHO_KV_BLOCK_TOKENS;
    for (int64_t t = 0; t < p.num_tokens && check.ok(); ++t) {
        check.rule(p.slots[t] >= -1 && p.slots[t] < slots,
                   "slots[%lld] is %lld, must be -1 or in [0, num_blocks * 16 = %lld)", static_cast<long long>(t),
                   static_cast<long long>(p.slots[t]), static_cast<long long>(slots));
    }
    return check.status();
}

int32_t check_shape(const tacho_attention_params& p, const KernelTable& kernels) {
    ArgumentCheck check("attention");
    check_head_sizes(check, p.num_kv_heads, p.head_dim);
    check_query_heads(check, p.num_heads, p.num_kv_heads);
    check_caches(check, p.kv_dtype, p.num_blocks, p.num_kv_heads, p.head_dim, p.k_cache, p.v_cache);
    check.size("window", p.window, 0)
        .number("scale", p.scale, -__FLT_MAX__)
        .number("softcap", p.softcap, 0)
        .size("num_sequences", p.num_sequences, 0)
        .size("num_items", p.num_items, 0)
        .size("block_table_stride", p.block_table_stride, 0)
        .extent("block_table", p.num_sequences, p.block_table_stride);
    const bool some = p.num_items > 0;
    const int64_t columns = int64_t{p.num_heads} * p.head_dim;
    check_rows(check, "ldq", p.ldq, "num_heads * head_dim", columns, "q", p.q, p.num_items);
    check_rows(check, "ldo", p.ldo, "num_heads * head_dim", columns, "out", p.out, p.num_items);
    check.pointer("q_starts", p.q_starts, some)
        .pointer("context_lens", p.context_lens, some)
        .pointer("block_table", p.block_table, some)
        .pointer("items", p.items, some)
        .pointer("sinks", p.sinks, false)
        .pointer("scratch", p.scratch, some)
        .size("num_partials", p.num_partials, 0)
        .pointer("partials", p.partials, p.num_partials > 0)
        .size("num_tickets", p.num_tickets, 0)
        .pointer("tickets", p.tickets, p.num_tickets > 0);
    if (some && check.ok()) {
        const int64_t floats = kernels.attention_scratch(p.head_dim);
        check.rule(p.scratch_floats >= floats, "scratch_floats is %lld, must be at least %lld",
                   static_cast<long long>(p.scratch_floats), static_cast<long long>(floats));
    }
    return check.status();
}

int64_t work_items(const tacho_attention_params& p) {
    return p.num_items;
}

namespace {

void check_item(ArgumentCheck& check, const tacho_attention_params& p, int64_t index) {
    const tacho_attention_item& item = p.items[index];
    const auto at = static_cast<long long>(index);
    check.rule(item.sequence >= 0 && item.sequence < p.num_sequences,
               "items[%lld].sequence is %d, must be in [0, num_sequences = %lld)", at, item.sequence,
               static_cast<long long>(p.num_sequences));
    check.rule(item.kv_head >= 0 && item.kv_head < p.num_kv_heads,
               "items[%lld].kv_head is %d, must be in [0, num_kv_heads = %d)", at, item.kv_head, p.num_kv_heads);
    if (!check.ok()) {
        return;
    }
    const int32_t s = item.sequence;
    const int32_t start = p.q_starts[s];
    const int32_t stop = p.q_starts[s + 1];
    check.rule(start >= 0 && start <= stop, "q_starts[%d] to q_starts[%d] is %d to %d, must rise from 0", s, s + 1,
               start, stop);
    check.rule(item.q_begin >= 0 && item.q_begin <= item.q_end && item.q_end <= stop - start,
               "items[%lld] has queries %d to %d, must be a range within the sequence's %d", at, item.q_begin,
               item.q_end, stop - start);
    const int64_t length = p.context_lens[s];
    check.rule(length >= stop - start, "context_lens[%d] is %lld, must be at least the sequence's %d queries", s,
               static_cast<long long>(length), stop - start);
    check.rule(groups(length) <= p.block_table_stride,
               "context_lens[%d] is %lld, must fit block_table_stride = %lld blocks of 16", s,
               static_cast<long long>(length), static_cast<long long>(p.block_table_stride));
    if (!check.ok() || item.q_begin == item.q_end) {
        return;
    }
    const int64_t base = length - (stop - start);
    const int64_t splits = (base + item.q_end - 1) / TACHO_ATTENTION_SPLIT_KEYS + 1;
    check.rule(item.split_begin >= 0 && item.split_begin < item.split_end && item.split_end <= splits,
               "items[%lld] has splits %d to %d, must be a range within the %lld of its keys", at, item.split_begin,
               item.split_end, static_cast<long long>(splits));
    if (item.partial == -1) {
        check.rule(item.split_end - item.split_begin == splits,
                   "items[%lld] has splits %d to %d of %lld and no partials", at, item.split_begin, item.split_end,
                   static_cast<long long>(splits));
    } else {
        const int64_t rows = splits * (item.q_end - item.q_begin) * (p.num_heads / p.num_kv_heads);
        check.rule(item.partial >= 0 && item.partial + rows <= p.num_partials,
                   "items[%lld].partial is %d, must leave room for %lld rows of num_partials = %lld", at, item.partial,
                   static_cast<long long>(rows), static_cast<long long>(p.num_partials));
        check.rule(item.ticket >= 0 && item.ticket < p.num_tickets,
                   "items[%lld].ticket is %d, must be in [0, num_tickets = %lld)", at, item.ticket,
                   static_cast<long long>(p.num_tickets));
    }
    if (!check.ok()) {
        return;
    }
    const AttentionCost cost = attention_cost(p, item);
    const int32_t* table = p.block_table + s * p.block_table_stride;
    const int64_t end = groups(cost.first_key + cost.union_keys);
    for (int64_t b = cost.first_key / kGroup; b < end && check.ok(); ++b) {
        check.rule(table[b] >= 0 && table[b] < p.num_blocks,
                   "block_table[%d][%lld] is %d, must be in [0, num_blocks = %lld)", s, static_cast<long long>(b),
                   table[b], static_cast<long long>(p.num_blocks));
    }
}

}  // namespace

int32_t check_contents(const tacho_attention_params& p, int64_t begin, int64_t end) {
    ArgumentCheck check("attention");
    for (int64_t i = begin; i < end && check.ok(); ++i) {
        check_item(check, p, i);
    }
    return check.status();
}

int32_t check_shape(const tacho_kv_copy_blocks_params& p, const KernelTable&) {
    ArgumentCheck check("kv_copy_blocks");
    const bool some = p.num_caches > 0 && p.num_pairs > 0;
    return check.size("num_caches", p.num_caches, 0)
        .size("num_pairs", p.num_pairs, 0)
        .extent("num_caches * num_pairs", p.num_caches, p.num_pairs)
        .size("num_blocks", p.num_blocks, 0)
        .size("block_bytes", p.block_bytes, 1)
        .extent("num_blocks * block_bytes", p.num_blocks, p.block_bytes)
        .pointer("caches", p.caches, some)
        .pointer("pairs", p.pairs, some)
        .status();
}

int64_t work_items(const tacho_kv_copy_blocks_params& p) {
    return p.num_caches * p.num_pairs;
}

int32_t check_contents(const tacho_kv_copy_blocks_params& p, int64_t begin, int64_t end) {
    ArgumentCheck check("kv_copy_blocks");
    for (int64_t i = begin; i < end && check.ok(); ++i) {
        const int64_t cache = i / p.num_pairs;
        const int64_t pair = i % p.num_pairs;
        check.rule(p.caches[cache] != nullptr, "caches[%lld] is NULL", static_cast<long long>(cache));
        for (int64_t side = 2 * pair; side < 2 * pair + 2; ++side) {
            check.rule(p.pairs[side] >= 0 && p.pairs[side] < p.num_blocks,
                       "pairs[%lld] is %lld, must be in [0, num_blocks = %lld)", static_cast<long long>(side),
                       static_cast<long long>(p.pairs[side]), static_cast<long long>(p.num_blocks));
        }
        check.rule(!check.ok() || p.pairs[2 * pair] != p.pairs[2 * pair + 1],
                   "pairs[%lld] and pairs[%lld] are the same block", static_cast<long long>(2 * pair),
                   static_cast<long long>(2 * pair + 1));
    }
    return check.status();
}

int32_t check_shape(const tacho_silu_mul_params& p, const KernelTable& kernels) {
    ArgumentCheck check("silu_mul");
    check.size("m", p.m, 0).size("n", p.n, 1).activation_format(p.format, "n", p.n);
    check_rows(check, "ld_gate", p.ld_gate, "n", p.n, "gate", p.gate, p.m);
    check_rows(check, "ld_up", p.ld_up, "n", p.n, "up", p.up, p.m);
    if (check.ok()) {
        const int64_t bytes = kernels.activation_bytes(p.format, p.n);
        check.activation_rows("y_row_bytes", p.y_row_bytes, bytes, p.format, "y", p.y, p.m);
    }
    return check.status();
}

int64_t work_items(const tacho_silu_mul_params& p) {
    return (p.n + 31) / 32;
}

}  // namespace tacho
