/*
 * The packed layout of a weight matrix [n][k]: panels of 16 rows that hold all of k, ceil(n / 16) of them, so that one
 * vector carries 16 outputs and no sum is ever horizontal. Rows past n are zeros. A panel of a quantised type is made of
 * units, each a multiple of 64 bytes and read once, front to back, which is what memory is fastest at; k that a last unit has too much has zero scales.
 * Instruction sets differ where it says so, and nothing outside this folder may rely on any of it.
 *
 *   F32, F16   [k][16 rows]
 *   BF16       in 12 bits a weight: bfloats.h
 *   Q8_0       64 k, 1088 bytes   | f16 scale [2][16] | 2 blocks of 512 |
 *                block, wide products       int8 [16][16 rows][2 k]
 *                block, others              uint8 [8][16 rows][4 k], 128 above the code
 *   Q4_0       64 k, 576 bytes    | f16 scale [2][16] | 2 blocks of nibbles |
 *   Q4_K       256 k, 2304 bytes  | f16 scale [16] | f16 min [16] | 8 times sub-scales and sub-mins of 6 bits (SubQ4_K) |
 *                                 | 8 blocks of nibbles |
 *   Q6_K       256 k, 3392 bytes  | f16 scale [16] | 32 unused |, then 4 times 64 k:
 *                                 | i8 sub-scale [4][16] | 2 times a block of nibbles and one of high bits |
 *
 *   a block of nibbles   32 k, [4][16 rows][4 k]: low nibbles of group j are k 8 j .. 8 j + 3, high ones the next four
 *   a block of high bits 32 k, [2][16 rows][4 k]: bits 2 r and 2 r + 1 of byte [g][row][i] belong to k = 16 g + 4 r + i
 */
#ifndef TACHO_CPU_KERNELS_WEIGHTS_H
#define TACHO_CPU_KERNELS_WEIGHTS_H

#include "dots.h"
#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

constexpr int64_t kPanelRows = 16;
constexpr int64_t kQuantBlock = 32;
constexpr int64_t kNibbleBytes = kQuantBlock / 2 * kPanelRows;

struct UnitQ8_0 {
    static constexpr int64_t kElements = 64;
    Half scale[2][kPanelRows];
    uint8_t codes[2][kQuantBlock * kPanelRows];
};
static_assert(sizeof(UnitQ8_0) == 1088, "no padding");

struct UnitQ4_0 {
    static constexpr int64_t kElements = 64;
    Half scale[2][kPanelRows];
    uint8_t codes[2][kNibbleBytes];
};
static_assert(sizeof(UnitQ4_0) == 576, "no padding");

/* Of a block of 32 k: sub-scales in the low 6 bits, the two low bits of a sub-min above them; the four others of rows
 * i and 8 + i in byte i. */
struct SubQ4_K {
    uint8_t scale_min[kPanelRows];
    uint8_t min[kPanelRows / 2];

    TACHO_INLINE Bytes16 scales() const { return load_bytes(scale_min) & 63; }
    TACHO_INLINE Bytes16 mins() const {
        uint64_t low;
        __builtin_memcpy(&low, min, sizeof low);
        constexpr uint64_t nibbles = 0x0f0f0f0f0f0f0f0f;
        const Words64 upper = {low & nibbles, low >> 4 & nibbles};
        return load_bytes(scale_min) >> 6 | Bytes16(upper << 2);
    }
    TACHO_INLINE void set(int64_t row, int sub_scale, int sub_min) {
        scale_min[row] = static_cast<uint8_t>(sub_scale | (sub_min & 3) << 6);
        uint8_t& nibbles = min[row % 8];
        const int shift = row < 8 ? 0 : 4;
        nibbles = static_cast<uint8_t>((nibbles & ~(15 << shift)) | sub_min >> 2 << shift);
    }
};

struct UnitQ4_K {
    static constexpr int64_t kElements = 256;
    Half scale[kPanelRows];
    Half min[kPanelRows];
    SubQ4_K sub[8];
    uint8_t codes[8][kNibbleBytes];
};
static_assert(sizeof(UnitQ4_K) == 2304, "no padding");

struct UnitQ6_K {
    static constexpr int64_t kElements = 256;
    Half scale[kPanelRows];
    uint8_t unused[32];
    struct {
        int8_t sub_scale[4][kPanelRows];
        struct {
            uint8_t codes[kNibbleBytes];
            uint8_t high[kNibbleBytes / 2];
        } block[2];
    } part[4];
};
static_assert(sizeof(UnitQ6_K) == 3392, "no padding");

TACHO_INLINE int64_t panel_count(int64_t n) {
    return (n + kPanelRows - 1) / kPanelRows;
}

/* Elements or units of one panel. */
template <class Unit>
TACHO_INLINE int64_t panel_units(const Unit*, int64_t k) {
    return (k + Unit::kElements - 1) / Unit::kElements;
}
TACHO_INLINE int64_t panel_units(const float*, int64_t k) {
    return k * kPanelRows;
}
TACHO_INLINE int64_t panel_units(const Half*, int64_t k) {
    return k * kPanelRows;
}

/* The start of a panel. */
template <class Unit>
TACHO_INLINE const Unit* panel_at(const Unit* type, const void* packed, int64_t panel, int64_t k) {
    return static_cast<const Unit*>(packed) + panel * panel_units(type, k);
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
