/* Writing and copying of the paged KV cache; its layout is in core/kv_layout.h. */
#include "core/kv_layout.h"
#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* Writes one head's k and v, [head_dim], into slot `slot` of its panels. */
template <class Element>
struct PlainWriter {
    static void write(const float* k, const float* v, int64_t head_dim, int64_t slot, void* k_panel, void* v_panel) {
        auto* k_column = static_cast<Element*>(k_panel) + slot;
        Element* v_row = static_cast<Element*>(v_panel) + slot * head_dim;
        for (int64_t at = 0; at < head_dim; at += 16) {
            const int64_t count = smaller(16, head_dim - at);
            Element keys[16];
            store(keys, load_partial(k + at, count));
            for (int64_t i = 0; i < count; ++i) {
                k_column[(at + i) * kBlockTokens] = keys[i];
            }
            store_partial(v_row + at, load_partial(v + at, count), count);
        }
    }
};

/* Up to kScaleElements elements as codes and their scale. */
struct Quantised {
    int8_t codes[kScaleElements];
    Half scale;

    Quantised(const float* x, int64_t count) {
        Vec half[2];
        Vec top = zero();
        Vec odd = zero(); /* NaN where an element is not finite */
        for (int64_t i = 0; i < 2; ++i) {
            const int64_t there = smaller(16, larger(0, count - 16 * i));
            half[i] = load_partial(x + 16 * i, there);
            top = max(top, max(half[i], sub(zero(), half[i])));
            odd = add(odd, sub(half[i], half[i]));
        }
        const float unit = max_lane(top) / 127;
        Half rounded[16];
        store(rounded, broadcast(unit));
        scale = rounded[0];
        if (!(sum_lanes(odd) == 0) || !(unit < 65520)) {
            scale.bits = 0x7e00;
        }
        const float factor = to_float(scale) > 0 ? 1 / unit : 0;
        for (int64_t i = 0; i < 2; ++i) {
            float whole[16];
            store(whole, round(mul(half[i], broadcast(factor))));
            for (int64_t j = 0; j < 16; ++j) {
                codes[16 * i + j] = factor > 0 ? static_cast<int8_t>(whole[j]) : int8_t{0};
            }
        }
    }
};

struct ScaledWriter {
    static void write(const float* k, const float* v, int64_t head_dim, int64_t slot, void* k_panel, void* v_panel) {
        auto* k_scales = static_cast<Half*>(k_panel);
        auto* v_scales = static_cast<Half*>(v_panel);
        auto* k_column = reinterpret_cast<int8_t*>(k_scales + kv_scales(head_dim) * kBlockTokens) + slot;
        auto* v_row = reinterpret_cast<int8_t*>(v_scales + kv_scales(head_dim) * kBlockTokens) + slot * head_dim;
        for (int64_t at = 0; at < head_dim; at += kScaleElements) {
            const int64_t count = smaller(kScaleElements, head_dim - at);
            const Quantised keys(k + at, count);
            const Quantised values(v + at, count);
            const int64_t scale = at / kScaleElements * kBlockTokens + slot;
            k_scales[scale] = keys.scale;
            v_scales[scale] = values.scale;
            for (int64_t i = 0; i < count; ++i) {
                k_column[(at + i) * kBlockTokens] = keys.codes[i];
                v_row[at + i] = values.codes[i];
            }
        }
    }
};

template <class Writer>
void write_heads(const tacho_kv_write_params& p, int64_t begin, int64_t end) {
    auto* k_cache = static_cast<uint8_t*>(p.k_cache);
    auto* v_cache = static_cast<uint8_t*>(p.v_cache);
    for (int64_t head = begin; head < end; ++head) {
        for (int64_t t = 0; t < p.num_tokens; ++t) {
            if (p.slots[t] < 0) {
                continue;
            }
            const int64_t panel = kv_panel(p.kv_dtype, p.slots[t] / kBlockTokens, p.num_kv_heads, head, p.head_dim);
            Writer::write(p.k + t * p.ldk + head * p.head_dim, p.v + t * p.ldv + head * p.head_dim, p.head_dim,
                          p.slots[t] % kBlockTokens, k_cache + panel, v_cache + panel);
        }
    }
}

}  // namespace

void kv_write(const tacho_kv_write_params& p, int64_t begin, int64_t end) {
    switch (p.kv_dtype) {
        case TACHO_DTYPE_F32:
            return write_heads<PlainWriter<float>>(p, begin, end);
        case TACHO_DTYPE_F16:
            return write_heads<PlainWriter<Half>>(p, begin, end);
        case TACHO_DTYPE_Q8_0:
            return write_heads<ScaledWriter>(p, begin, end);
        default:
            return write_heads<PlainWriter<BFloat>>(p, begin, end);
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
