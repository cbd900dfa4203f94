/*
 * Rows of activations in the form that matmul reads (TACHO_ACTIVATION_*). F32 rows are floats; BF16 rows are bfloats,
 * an odd k followed by a zero; an INT8 row is an ActivationBlock for each 32 elements, then, with
 * kWideProducts, a WideBlock for each: what a product does not read is not in its way.
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

struct ActivationBlock {
    int8_t codes[kActivationBlock];
    float scale;
    float negative_sum;  /* -scale * sum of the codes */
    int32_t start_128;   /* z = 128, int32 always */
    int32_t start_8;     /* z = 8 */
    int32_t start_32[2]; /* z = 32, of each half of the block */
};
static_assert(sizeof(ActivationBlock) == 56, "no padding");

/* The same codes for products of int16. */
struct WideBlock {
    int16_t codes[kActivationBlock];
    float scale;
    int32_t start_crossed; /* -sum a[k] a[k + 2] over those k with k % 4 < 2 */
};
static_assert(sizeof(WideBlock) == 72, "no padding");

constexpr int64_t kBlockBytes =
    static_cast<int64_t>(sizeof(ActivationBlock)) + (kWideProducts ? static_cast<int64_t>(sizeof(WideBlock)) : 0);

/* The blocks of a row of k elements. */
TACHO_INLINE const ActivationBlock* blocks_of(const ActivationBlock*, const void* row, int64_t) {
    return static_cast<const ActivationBlock*>(row);
}
TACHO_INLINE const WideBlock* blocks_of(const WideBlock*, const void* row, int64_t k) {
    return reinterpret_cast<const WideBlock*>(static_cast<const ActivationBlock*>(row) + k / kActivationBlock);
}

TACHO_INLINE int32_t start_of(int32_t offset, int32_t first, int32_t second) {
    const auto low = static_cast<uint32_t>(-offset * first);
    const auto high = static_cast<uint32_t>(-offset * second);
    return static_cast<int32_t>(kPairSums ? (low & 0xffff) | high << 16 : low + high);
}

TACHO_INLINE void widen(const ActivationBlock& from, WideBlock* to) {
    for (int64_t i = 0; i < kActivationBlock; ++i) {
        to->codes[i] = from.codes[i];
    }
    int32_t crossed = 0;
    for (int64_t i = 0; i < kActivationBlock; i += 4) {
        crossed += from.codes[i] * from.codes[i + 2] + from.codes[i + 1] * from.codes[i + 3];
    }
    to->scale = from.scale;
    to->start_crossed = -crossed;
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
    int32_t first[2];
    int32_t second[2];
    code_sums(block->codes, first, second);
    const int32_t sum = first[0] + second[0] + first[1] + second[1];
    block->scale = finite ? (tiny ? 0 : largest / 127) : __builtin_nanf("");
    block->negative_sum = -block->scale * static_cast<float>(sum);
    block->start_128 = -128 * sum;
    block->start_8 = start_of(8, first[0] + first[1], second[0] + second[1]);
    for (int half = 0; half < 2; ++half) {
        block->start_32[half] = start_of(32, first[half], second[half]);
    }
}

/* Writes the 32 elements from `at`, a multiple of 32, of a row of k, or those that are left of it. */
TACHO_INLINE void put_activations(int32_t format, void* row, int64_t k, int64_t at, Vec low, Vec high) {
    const int64_t count = smaller(kActivationBlock, k - at);
    const int64_t first = smaller(count, 16);
    switch (format) {
        case TACHO_ACTIVATION_INT8: {
            ActivationBlock* const blocks = static_cast<ActivationBlock*>(row);
            const int64_t block = at / kActivationBlock;
            quantise(low, high, blocks + block);
            if (kWideProducts) {
                widen(blocks[block], reinterpret_cast<WideBlock*>(blocks + k / kActivationBlock) + block);
            }
            return;
        }
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
