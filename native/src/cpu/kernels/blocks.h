/*
 * Blocks of quantised rows as they lie in a GGUF file. raw_codes(i, code) gives the 32 codes from element 32 i, unsigned
 * as they are stored (Q8_0: two's complement).
 */
#ifndef TACHO_CPU_KERNELS_BLOCKS_H
#define TACHO_CPU_KERNELS_BLOCKS_H

#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* value = scale * code */
struct BlockQ8_0 {
    static constexpr int64_t kElements = 32;
    Half scale;
    int8_t code[32];

    void raw_codes(int64_t, uint8_t (&to)[32]) const { __builtin_memcpy(to, code, sizeof to); }
};
static_assert(sizeof(BlockQ8_0) == 34, "no padding");

/* value = scale * (code - 8); low nibbles are elements 0..15, high ones 16..31 */
struct BlockQ4_0 {
    static constexpr int64_t kElements = 32;
    Half scale;
    uint8_t codes[16];

    void raw_codes(int64_t, uint8_t (&to)[32]) const {
        for (int i = 0; i < 16; ++i) {
            to[i] = codes[i] & 15;
            to[i + 16] = codes[i] >> 4;
        }
    }
};
static_assert(sizeof(BlockQ4_0) == 18, "no padding");

/* Eight sub-blocks of 32: value = scale * sub_scale * code - min * sub_min, the sub-block's two numbers of 6 bits each
 * in 12 bytes. Two sub-blocks share 32 bytes of codes: low nibbles are the first one's. */
struct BlockQ4_K {
    static constexpr int64_t kElements = 256;
    Half scale;
    Half min;
    uint8_t sub[12];
    uint8_t codes[128];

    void raw_codes(int64_t s, uint8_t (&to)[32]) const {
        const uint8_t* pairs = codes + s / 2 * 32;
        const int shift = s % 2 == 0 ? 0 : 4;
        for (int i = 0; i < 32; ++i) {
            to[i] = pairs[i] >> shift & 15;
        }
    }
    int sub_scale(int64_t s) const { return s < 4 ? sub[s] & 63 : (sub[s + 4] & 15) | (sub[s - 4] >> 6) << 4; }
    int sub_min(int64_t s) const { return s < 4 ? sub[s + 4] & 63 : (sub[s + 4] >> 4) | (sub[s] >> 6) << 4; }
};
static_assert(sizeof(BlockQ4_K) == 144, "no padding");

/* Sixteen sub-blocks of 16: value = scale * sub_scale * (code - 32). A code's low nibble and its two high bits lie
 * apart; each half of 128 elements has four groups of 32, which share bytes. */
struct BlockQ6_K {
    static constexpr int64_t kElements = 256;
    uint8_t low[128];
    uint8_t high[64];
    int8_t sub_scale[16];
    Half scale;

    void raw_codes(int64_t s, uint8_t (&to)[32]) const {
        const uint8_t* pairs = low + s / 4 * 64 + s % 2 * 32;
        const uint8_t* upper = high + s / 4 * 32;
        const int shift = s % 4 < 2 ? 0 : 4;
        const int upper_shift = static_cast<int>(s % 4 * 2);
        for (int i = 0; i < 32; ++i) {
            to[i] = static_cast<uint8_t>((pairs[i] >> shift & 15) | (upper[i] >> upper_shift & 3) << 4);
        }
    }
};
static_assert(sizeof(BlockQ6_K) == 210, "no padding");

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
