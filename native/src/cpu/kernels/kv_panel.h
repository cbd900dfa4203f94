/*
 * One head of one block of the KV cache, read as floats in registers: sixteen tokens of an element of K, or sixteen
 * elements of a token of V. The layouts are in core/kv_layout.h. Of Q8_0 the codes are read; their scales are multiplied
 * in where there are fewer numbers: into the scores of a group of elements, and into the weights of V.
 */
#ifndef TACHO_CPU_KERNELS_KV_PANEL_H
#define TACHO_CPU_KERNELS_KV_PANEL_H

#include "core/kv_layout.h"
#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* Panels of F32, F16 and BF16. */
template <class E>
struct PlainPanel {
    using Element = E;
    static constexpr int64_t kElementBytes = sizeof(E);
    static constexpr bool kScaled = false;

    const E* elements;
    int64_t head_dim;

    static TACHO_INLINE PlainPanel at(const void* panel, int64_t head_dim) {
        return {static_cast<const E*>(panel), head_dim};
    }

    /* Element d of the sixteen keys. */
    TACHO_INLINE Vec key(int64_t d) const { return load(elements + d * kBlockTokens); }
    /* Elements [d, d + 16) of the value of `token`. */
    TACHO_INLINE Vec value(int64_t token, int64_t d) const { return load(elements + token * head_dim + d); }
    /* The first `count` of them; the others are 0. */
    TACHO_INLINE Vec value(int64_t token, int64_t d, int64_t count) const {
        return load_partial(elements + token * head_dim + d, count);
    }
};

/* Panels of Q8_0. */
struct ScaledPanel {
    static constexpr int64_t kElementBytes = 1;
    static constexpr bool kScaled = true;

    const Half* scales;  /* [kv_scales(head_dim)][16] */
    const int8_t* codes; /* [head_dim][16] or [16][head_dim] */
    int64_t head_dim;

    static TACHO_INLINE ScaledPanel at(const void* panel, int64_t head_dim) {
        const auto* scales = static_cast<const Half*>(panel);
        return {scales, reinterpret_cast<const int8_t*>(scales + kv_scales(head_dim) * kBlockTokens), head_dim};
    }

    /* Of the sixteen tokens: for their elements from `d` on, up to the next multiple of kScaleElements. */
    TACHO_INLINE Vec scale(int64_t d) const { return load(scales + d / kScaleElements * kBlockTokens); }
    TACHO_INLINE Vec key(int64_t d) const { return load_int8(codes + d * kBlockTokens); }
    TACHO_INLINE Vec value(int64_t token, int64_t d) const { return load_int8(codes + token * head_dim + d); }
    TACHO_INLINE Vec value(int64_t token, int64_t d, int64_t count) const {
        int8_t copy[16] = {};
        for (int64_t i = 0; i < count; ++i) {
            copy[i] = codes[token * head_dim + d + i];
        }
        return load_int8(copy);
    }
};

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
