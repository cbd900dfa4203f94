/*
 * Rows of activations in the form that matmul reads (TACHO_ACTIVATION_*). F32 rows are floats; BF16 rows are bfloats,
 * an odd k followed by a zero; an INT8 row is one ActivationBlock for 32 elements.
 *
 * Weights are the unsigned operand of an integer product, with an offset z: sum (w - z) a = sum w a - z sum a. A sum
 * starts at its -z sum a, which is kept here ready to be broadcast: an int32, or with kPairSums two int16, each of its
 * own half of the products.
 */
#ifndef TACHO_CPU_KERNELS_ACTIVATIONS_H
#define TACHO_CPU_KERNELS_ACTIVATIONS_H

#include "dots.h"
#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

constexpr int64_t kActivationBlock = 32;

struct NarrowBlock {
    int8_t codes[kActivationBlock];
    float scale;
    float scaled_sum;    /* scale * sum of the codes */
    int32_t start_128;   /* z = 128, int32 always */
    int32_t start_8;     /* z = 8 */
    int32_t start_32[2]; /* z = 32, of each half of the block */
};
static_assert(sizeof(NarrowBlock) == 56, "no padding");

/* With the codes as int16 too. */
struct WideBlock : NarrowBlock {
    int16_t wide[kActivationBlock];
};
static_assert(sizeof(WideBlock) == 120, "no padding");

template <bool wide>
struct BlockChoice {
    using Type = NarrowBlock;
};
template <>
struct BlockChoice<true> {
    using Type = WideBlock;
};
using ActivationBlock = BlockChoice<kWideProducts>::Type;

TACHO_INLINE int32_t start_of(int32_t offset, int32_t first, int32_t second) {
    const auto low = static_cast<uint32_t>(-offset * first);
    const auto high = static_cast<uint32_t>(-offset * second);
    return static_cast<int32_t>(kPairSums ? (low & 0xffff) | high << 16 : low + high);
}

TACHO_INLINE void widen_codes(NarrowBlock*) {}
TACHO_INLINE void widen_codes(WideBlock* block) {
    for (int64_t i = 0; i < kActivationBlock; ++i) {
        block->wide[i] = block->codes[i];
    }
}

/*
 * Quantises 32 elements: scale = max|x| / 127, code = x * (127 / max|x|) to the nearest, ties to even. Below 2^-119,
 * where that factor would overflow, the block is 0. An element that is not finite makes the scale NaN: every product
 * with the row is NaN then, never a plausible number.
 */
TACHO_INLINE void quantise(Vec low, Vec high, ActivationBlock* block) {
    const Vec sizes = max(max(low, sub(zero(), low)), max(high, sub(zero(), high)));
    const float largest = max_lane(sizes);
    const float probe = sum_lanes(fma(low, zero(), mul(high, zero())));
    const bool finite = probe == 0;
    const bool tiny = !finite || largest < 0x1p-119f;
    const Vec factor = broadcast(tiny ? 0 : 127 / largest);
    const Vec keep = broadcast(0);
    store_codes(block->codes, tiny ? keep : round(mul(low, factor)));
    store_codes(block->codes + 16, tiny ? keep : round(mul(high, factor)));
    widen_codes(block);
    int32_t first[2];
    int32_t second[2];
    code_sums(block->codes, first, second);
    const int32_t sum = first[0] + second[0] + first[1] + second[1];
    block->scale = finite ? (tiny ? 0 : largest / 127) : __builtin_nanf("");
    block->scaled_sum = block->scale * static_cast<float>(sum);
    block->start_128 = -128 * sum;
    block->start_8 = start_of(8, first[0] + first[1], second[0] + second[1]);
    for (int half = 0; half < 2; ++half) {
        block->start_32[half] = start_of(32, first[half], second[half]);
    }
}

/* Writes elements [at, at + count) of a row, count at most 32; `at` is a multiple of 32. */
TACHO_INLINE void put_activations(int32_t format, void* row, int64_t at, int64_t count, Vec low, Vec high) {
    const int64_t first = smaller(count, 16);
    switch (format) {
        case TACHO_ACTIVATION_INT8:
            return quantise(low, high, static_cast<ActivationBlock*>(row) + at / kActivationBlock);
        case TACHO_ACTIVATION_BF16: {
            BFloat* to = static_cast<BFloat*>(row) + at;
            store_partial(to, low, first);
            store_partial(to + first, high, count - first);
            if (count % 2 != 0) {
                to[count] = {0};
            }
            return;
        }
        default: {
            float* to = static_cast<float*>(row) + at;
            store_partial(to, low, first);
            store_partial(to + first, high, count - first);
        }
    }
}

/* Row r of packed activations. */
TACHO_INLINE void* activation_row(void* packed, int64_t row_bytes, int64_t r) {
    return static_cast<uint8_t*>(packed) + r * row_bytes;
}
TACHO_INLINE const void* activation_row(const void* packed, int64_t row_bytes, int64_t r) {
    return static_cast<const uint8_t*>(packed) + r * row_bytes;
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
