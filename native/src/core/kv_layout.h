/*
 * Where an element lies in a paged KV cache, the same on every backend:
 *
 *   k_cache [num_blocks][num_kv_heads] panels of [head_dim][16 tokens]    tokens innermost: q . k has no horizontal sum
 *   v_cache [num_blocks][num_kv_heads] panels of [16 tokens][head_dim]
 *
 * F32, F16 and BF16 panels are their elements alone. A Q8_0 panel begins with the scales of its groups of 32 elements
 * of one token (the last group of a head may be shorter), then come the codes, in the order of the elements:
 *
 *   f16 scale [ceil(head_dim / 32)][16 tokens] | int8 code, [head_dim][16] of K, [16][head_dim] of V
 *
 * The functions are static, not inline: this header is included by files that are compiled for one instruction set, and
 * an inline function would leave a weak copy there which the linker might keep for all.
 */
#ifndef TACHO_CORE_KV_LAYOUT_H
#define TACHO_CORE_KV_LAYOUT_H

#include <stdint.h>

#include "tacho/tacho.h"

namespace tacho {

static constexpr int64_t kBlockTokens = TACHO_KV_BLOCK_TOKENS;

/* Elements of a token that share a scale. */
static constexpr int64_t kScaleElements = 32;

/* Scales of one token's head. */
[[maybe_unused]] static constexpr int64_t kv_scales(int64_t head_dim) {
    return (head_dim + kScaleElements - 1) / kScaleElements;
}

/* Bytes of one token's head. */
[[maybe_unused]] static constexpr int64_t kv_head_bytes(int32_t dtype, int64_t head_dim) {
    switch (dtype) {
        case TACHO_DTYPE_F32:
            return 4 * head_dim;
        case TACHO_DTYPE_Q8_0:
            return head_dim + 2 * kv_scales(head_dim);
        default:
            return 2 * head_dim;
    }
}

/* Byte offset of the panel of one head in one block, the same in K and V. */
[[maybe_unused]] static constexpr int64_t kv_panel(int32_t dtype, int64_t block, int64_t num_kv_heads, int64_t kv_head,
                                                   int64_t head_dim) {
    return (block * num_kv_heads + kv_head) * kBlockTokens * kv_head_bytes(dtype, head_dim);
}

}  // namespace tacho

#endif
