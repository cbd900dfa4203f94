/*
 * AMX: eight registers of 16 rows of 64 bytes, and products of two of them that are added to a third. A register's shape
 * is [rows][bytes]; those of an operation must fit together:
 *
 *   sums [m][4 n]   +=   a [m][4 k]   x   b [k][4 n]
 *
 * where a column of four bytes holds an int32 or a float of the sums, and of a and b four bytes or a pair of bfloats.
 */
#ifndef TACHO_CPU_AVX512_TILES_H
#define TACHO_CPU_AVX512_TILES_H

#include "simd.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

constexpr int64_t kTileRows = 16;

/* The operand of ldtilecfg. */
struct alignas(64) TileShapes {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};

    void set(int tile, int64_t tile_rows, int64_t row_bytes) {
        rows[tile] = static_cast<uint8_t>(tile_rows);
        bytes[tile] = static_cast<uint16_t>(row_bytes);
    }
};
static_assert(sizeof(TileShapes) == 64, "as the instruction reads it");

/* The thread's tile registers, from the first shapes to the end of a scope: until they are released, every switch of
 * threads saves 8 KiB. */
class Tiles {
  public:
    Tiles() = default;
    Tiles(const Tiles&) = delete;
    Tiles& operator=(const Tiles&) = delete;
    ~Tiles() { __asm__ volatile("tilerelease" ::: "memory"); }

    /* All registers become zeros. */
    void shape(const TileShapes& shapes) { __asm__ volatile("ldtilecfg %0" ::"m"(shapes) : "memory"); }
};

template <int tile>
TACHO_INLINE void tile_zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(tile));
}
template <int tile>
TACHO_INLINE void tile_load(const void* from, int64_t distance) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(distance), "i"(tile) : "memory");
}
template <int tile>
TACHO_INLINE void tile_store(void* to, int64_t distance) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(distance), "i"(tile) : "memory");
}
/* Signed bytes, sums of int32. */
template <int sums, int a, int b>
TACHO_INLINE void tile_dot_int8() {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b));
}
/* Pairs of bfloats, sums of float; denormals count as 0. */
template <int sums, int a, int b>
TACHO_INLINE void tile_dot_bfloats() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(b));
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
