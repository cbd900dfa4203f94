/* Writing and copying of the paged KV cache; its layout is in core/kv_layout.h. */
#include "core/kv_layout.h"
#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* Writes one head's k and v, [head_dim], into slot `slot` of its panels. */
template <class Element>
void write_head(const float* k, const float* v, int64_t head_dim, int64_t slot, Element* k_panel, Element* v_panel) {
    Element* v_row = v_panel + slot * head_dim;
    for (int64_t at = 0; at < head_dim; at += 16) {
        const int64_t count = smaller(16, head_dim - at);
        Element keys[16];
        store(keys, load_partial(k + at, count));
        for (int64_t i = 0; i < count; ++i) {
            k_panel[(at + i) * kBlockTokens + slot] = keys[i];
        }
        store_partial(v_row + at, load_partial(v + at, count), count);
    }
}

template <class Element>
void write_heads(const tacho_kv_write_params& p, int64_t begin, int64_t end, Element* k_cache, Element* v_cache) {
    for (int64_t head = begin; head < end; ++head) {
        for (int64_t t = 0; t < p.num_tokens; ++t) {
            if (p.slots[t] < 0) {
                continue;
            }
            const int64_t panel = kv_panel(p.slots[t] / kBlockTokens, p.num_kv_heads, head, p.head_dim);
            write_head(p.k + t * p.ldk + head * p.head_dim, p.v + t * p.ldv + head * p.head_dim, p.head_dim,
                       p.slots[t] % kBlockTokens, k_cache + panel, v_cache + panel);
        }
    }
}

}  // namespace

void kv_write(const tacho_kv_write_params& p, int64_t begin, int64_t end) {
    switch (p.kv_dtype) {
        case TACHO_DTYPE_F32:
            return write_heads(p, begin, end, static_cast<float*>(p.k_cache), static_cast<float*>(p.v_cache));
        case TACHO_DTYPE_F16:
            return write_heads(p, begin, end, static_cast<Half*>(p.k_cache), static_cast<Half*>(p.v_cache));
        default:
            return write_heads(p, begin, end, static_cast<BFloat*>(p.k_cache), static_cast<BFloat*>(p.v_cache));
    }
}

void kv_copy_blocks(const tacho_kv_copy_blocks_params& p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        auto* cache = static_cast<uint8_t*>(p.caches[i / p.num_pairs]);
        const int64_t* pair = p.pairs + 2 * (i % p.num_pairs);
        __builtin_memcpy(cache + pair[1] * p.block_bytes, cache + pair[0] * p.block_bytes,
                         static_cast<unsigned long>(p.block_bytes));
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
