/*
 * What the matmuls share: how rows and panels are cut into tiles, and what becomes of the sums.
 *
 * A few panels at a time are multiplied with all rows, so that they stay in the cache meanwhile. An element of y is
 * summed in the same order in every tile, so its bits depend on its row and its panel alone.
 */
#ifndef TACHO_CPU_KERNELS_MATMUL_H
#define TACHO_CPU_KERNELS_MATMUL_H

#include "activations.h"
#include "tile.h"
#include "weights.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

/* Weights of integer codes, activations as INT8. */
void matmul_int8(const tacho_matmul_params& p, int64_t begin, int64_t end);

namespace {

TACHO_INLINE const void* x_row(const tacho_matmul_params& p, int64_t row) {
    return activation_row(p.x, p.x_row_bytes, row);
}

/* The blocks of activations that weights of integer codes are multiplied with. */
template <bool wide>
struct BlockChoice {
    using Type = ActivationBlock;
};
template <>
struct BlockChoice<true> {
    using Type = WideBlock;
};
template <class Unit>
constexpr bool kReadsWide = false;
template <>
constexpr bool kReadsWide<UnitQ8_0> = kWideProducts;
template <class Unit>
using BlockFor = typename BlockChoice<kReadsWide<Unit>>::Type;

/* y of one row and panel: the sum, the bias and what was there. */
TACHO_INLINE void put_result(const tacho_matmul_params& p, int64_t row, int64_t panel, Vec value) {
    const int64_t column = panel * kPanelRows;
    const int64_t columns = smaller(kPanelRows, p.n - column);
    float* y = p.y + row * p.ldy + column;
    if (p.bias != nullptr) {
        value = add(value, load_partial(p.bias + column, columns));
    }
    if (columns == kPanelRows) {
        store(y, p.accumulate != 0 ? add(load(y), value) : value);
    } else {
        store_partial(y, p.accumulate != 0 ? add(load_partial(y, columns), value) : value, columns);
    }
}

/*
 * Rows [row, row + R) against panels [begin, end), as many at a time as the tile takes. Tile::run<R, P>(p, row, panel,
 * first): `first` says that nobody has touched these panels yet.
 */
template <class Tile, bool few>
struct RowTile {
    const tacho_matmul_params& p;
    int64_t row;
    int64_t begin;
    int64_t end;

    template <int R>
    void run() const {
        constexpr int wide = Tile::panels(R, few);
        int64_t panel = begin;
        for (; panel + wide <= end; panel += wide) {
            Tile::template run<R, wide>(p, row, panel, row == 0);
        }
        for (; panel < end; ++panel) {
            Tile::template run<R, 1>(p, row, panel, row == 0);
        }
    }
};

/* All rows against panels [begin, end), in tiles of at most `most` rows. */
template <class Tile, bool few, int most>
void multiply_rows(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    /* Few rows are one tile, which sees all panels once. */
    const int64_t together = few ? end - begin : Tile::panels(1, false);
    /* As even as possible: a last tile of one row would load as much for less. */
    const int64_t tiles = (p.m + most - 1) / most;
    for (int64_t panel = begin; panel < end; panel += together) {
        for (int64_t t = 0; t < tiles; ++t) {
            const int64_t row = t * p.m / tiles;
            const RowTile<Tile, few> tile{p, row, panel, smaller(panel + together, end)};
            with_rows<most>((t + 1) * p.m / tiles - row, tile);
        }
    }
}

/* Few rows are one tile; Tile::kFewRows is how many they may be. More are cut into tiles of at most Tile::kRows. */
template <class Tile>
void multiply_tiles(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    if (p.m <= Tile::kFewRows) {
        multiply_rows<Tile, true, Tile::kFewRows>(p, begin, end);
    } else {
        multiply_rows<Tile, false, Tile::kRows>(p, begin, end);
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
