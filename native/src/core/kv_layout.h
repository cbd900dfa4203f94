/*
 * Where an element lies in a paged KV cache, the same on every backend:
 *
 *   k_cache [num_blocks][num_kv_heads][head_dim][16 tokens]    tokens innermost: q . k needs no horizontal sum
 *   v_cache [num_blocks][num_kv_heads][16 tokens][head_dim]
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

/* First element of the panel of one head in one block, [head_dim][16] of K and [16][head_dim] of V alike. */
[[maybe_unused]] static constexpr int64_t kv_panel(int64_t block, int64_t num_kv_heads, int64_t kv_head,
                                                   int64_t head_dim) {
    return (block * num_kv_heads + kv_head) * head_dim * kBlockTokens;
}

}  // namespace tacho

#endif
