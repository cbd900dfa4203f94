/*
 * The packed layout of a weight matrix [n][k]: panels of 16 rows, ceil(n / 16) of them, rows past n are zeros. It is
 * the same for all instruction sets so far, which nothing outside this folder may rely on.
 *
 *   F32, F16, BF16   [k][16 rows]
 *   Q8_0             k / 32 units of 544 bytes:  | f16 scale [16 rows] | int8 [32 k][16 rows] |
 *   Q4_0             k / 32 units of 288 bytes:  | f16 scale [16 rows] | nibbles [16 k][16 rows], high ones k + 16 |
 */
#ifndef TACHO_CPU_KERNELS_WEIGHTS_H
#define TACHO_CPU_KERNELS_WEIGHTS_H

#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

constexpr int64_t kPanelRows = 16;
constexpr int64_t kQuantBlock = 32;

struct UnitQ8_0 {
    Half scale[kPanelRows];
    int8_t code[kQuantBlock][kPanelRows];
};
static_assert(sizeof(UnitQ8_0) == 544, "no padding");

struct UnitQ4_0 {
    Half scale[kPanelRows];
    uint8_t codes[kQuantBlock / 2][kPanelRows];
};
static_assert(sizeof(UnitQ4_0) == 288, "no padding");

/* A block of a row in file layout. */
struct BlockQ8_0 {
    Half scale;
    int8_t code[kQuantBlock];
};
static_assert(sizeof(BlockQ8_0) == 34, "no padding");

struct BlockQ4_0 {
    Half scale;
    uint8_t codes[kQuantBlock / 2];
};
static_assert(sizeof(BlockQ4_0) == 18, "no padding");

TACHO_INLINE int64_t panel_count(int64_t n) {
    return (n + kPanelRows - 1) / kPanelRows;
}

/* Elements or units of one panel. */
TACHO_INLINE int64_t panel_steps(const float*, int64_t k) {
    return k * kPanelRows;
}
TACHO_INLINE int64_t panel_steps(const Half*, int64_t k) {
    return k * kPanelRows;
}
TACHO_INLINE int64_t panel_steps(const BFloat*, int64_t k) {
    return k * kPanelRows;
}
TACHO_INLINE int64_t panel_steps(const UnitQ8_0*, int64_t k) {
    return k / kQuantBlock;
}
TACHO_INLINE int64_t panel_steps(const UnitQ4_0*, int64_t k) {
    return k / kQuantBlock;
}

/* Calls body with a null pointer of the type that a packed matrix is made of. */
template <class Body>
TACHO_INLINE void with_weight_type(int32_t dtype, Body body) {
    switch (dtype) {
        case TACHO_DTYPE_F32:
            return body(static_cast<const float*>(nullptr));
        case TACHO_DTYPE_F16:
            return body(static_cast<const Half*>(nullptr));
        case TACHO_DTYPE_BF16:
            return body(static_cast<const BFloat*>(nullptr));
        case TACHO_DTYPE_Q8_0:
            return body(static_cast<const UnitQ8_0*>(nullptr));
        default:
            return body(static_cast<const UnitQ4_0*>(nullptr));
    }
}

/* The start of a panel. */
template <class Unit>
TACHO_INLINE const Unit* panel_at(const Unit* type, const void* packed, int64_t panel, int64_t k) {
    return static_cast<const Unit*>(packed) + panel * panel_steps(type, k);
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
