/*
 * Blocks of quantised rows as they lie in a GGUF file, at any alignment: they are made of bytes.
 * nibbles(i, first, second) gives the low four bits of the 32 codes from element 32 i, 16 each, unsigned as they are
 * stored.
 */
#ifndef TACHO_CPU_KERNELS_BLOCKS_H
#define TACHO_CPU_KERNELS_BLOCKS_H

#include "kernels.h"
#include "transpose.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* A number of two bytes. */
struct RawHalf {
    uint8_t bytes[2];

    TACHO_INLINE Half value() const {
        Half half;
        __builtin_memcpy(&half, bytes, sizeof half);
        return half;
    }
};

/* value = scale * code */
struct BlockQ8_0 {
    static constexpr int64_t kElements = 32;
    RawHalf scale;
    int8_t code[32];
};
static_assert(sizeof(BlockQ8_0) == 34, "no padding");

/* value = scale * (code - 8); low nibbles are elements 0..15, high ones 16..31 */
struct BlockQ4_0 {
    static constexpr int64_t kElements = 32;
    RawHalf scale;
    uint8_t pairs[16];

    TACHO_INLINE void nibbles(int64_t, Bytes16& first, Bytes16& second) const {
        first = load_bytes(pairs) & 15;
        second = load_bytes(pairs) >> 4;
    }
};
static_assert(sizeof(BlockQ4_0) == 18, "no padding");

/* Eight sub-blocks of 32: value = scale * sub_scale * code - min * sub_min, the sub-block's two numbers of 6 bits each
 * in 12 bytes. Two sub-blocks share 32 bytes of codes: low nibbles are the first one's. */
struct BlockQ4_K {
    static constexpr int64_t kElements = 256;
    RawHalf scale;
    RawHalf min;
    uint8_t sub[12];
    uint8_t pairs[128];

    TACHO_INLINE void nibbles(int64_t s, Bytes16& first, Bytes16& second) const {
        const uint8_t* from = pairs + s / 2 * 32;
        const int shift = s % 2 == 0 ? 0 : 4;
        first = load_bytes(from) >> shift & 15;
        second = load_bytes(from + 16) >> shift & 15;
    }
    TACHO_INLINE int sub_scale(int64_t s) const {
        return s < 4 ? sub[s] & 63 : (sub[s + 4] & 15) | (sub[s - 4] >> 6) << 4;
    }
    TACHO_INLINE int sub_min(int64_t s) const {
        return s < 4 ? sub[s + 4] & 63 : (sub[s + 4] >> 4) | (sub[s] >> 6) << 4;
    }
};
static_assert(sizeof(BlockQ4_K) == 144, "no padding");

/* Sixteen sub-blocks of 16: value = scale * sub_scale * (code - 32). A code's low nibble and its two high bits lie
 * apart; each half of 128 elements has four groups of 32, which share bytes. */
struct BlockQ6_K {
    static constexpr int64_t kElements = 256;
    uint8_t low[128];
    uint8_t high[64];
    int8_t sub_scale[16];
    RawHalf scale;

    TACHO_INLINE void nibbles(int64_t s, Bytes16& first, Bytes16& second) const {
        const uint8_t* pairs = low + s / 4 * 64 + s % 2 * 32;
        const int shift = s % 4 < 2 ? 0 : 4;
        first = load_bytes(pairs) >> shift & 15;
        second = load_bytes(pairs + 16) >> shift & 15;
    }
    /* The two high bits of the 16 codes from element 32 s + 16 half. */
    TACHO_INLINE Bytes16 high_bits(int64_t s, int64_t half) const {
        return load_bytes(high + s / 4 * 32 + half * 16) >> static_cast<int>(s % 4 * 2) & 3;
    }
};
static_assert(sizeof(BlockQ6_K) == 210, "no padding");

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
