/*
 * Matmul with BF16 weights by products of whole tiles (AMX). A tile of weights is 32 k of a panel, as pairs; of x as many
 * rows as there are, up to 16, straight from their memory.
 *
 *   up to 3 rows    sums in registers, without tiles: weights are multiplied as fast as memory gives them
 *   up to 16 rows   four panels at a time, so that a product need not wait for the one before; the packed weights are
 *                   read once, front to back
 *   more            a run of k of a group of panels is unpacked, once for all rows of a block; then 32 rows times two
 *                   panels
 *
 * An element of y is summed as tdpbf16ps sums: of 32 k the even ones and the odd ones, each a chain of fma from zero on in
 * the order of k, then both chains, then that to what was there; denormals are 0. A run begins at zero, and runs are added
 * up. So a result does not depend on the number of rows.
 */
#ifndef TACHO_CPU_KERNELS_TILED_BFLOATS_H
#define TACHO_CPU_KERNELS_TILED_BFLOATS_H

#include "bfloats.h"
#include "matmul.h"

#if TACHO_TILE_PRODUCTS

#include "tiles.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* k of a tile, and of a run (matmul.cpp says why there are runs). */
constexpr int64_t kTileK = 32;
constexpr int64_t kTiledRunK = 256;
constexpr int64_t kUnitsOfTile = kTileK / UnitBF16::kElements;

/* How far ahead packed weights are asked for, in units of a panel. */
constexpr int64_t kUnitsAhead = 8;

/* 32 k of a panel: [16 pairs of k][16 rows][2 k]. */
struct alignas(64) BFloatTileBytes {
    uint8_t pairs[kTileK / 2][kPanelRows * 4];
};

/* Reads a panel front to back as tiles; k past the end are zeros. */
class TileReader {
  public:
    TileReader() = default;
    TACHO_INLINE TileReader(const tacho_matmul_params& p, int64_t panel)
        : reader_(p.w, panel, p.n, p.k), units_(BFloatPanel::units_of(p.k)) {}

    TACHO_INLINE void read(int64_t tile, BFloatTileBytes& to) {
        for (int64_t i = 0; i < kUnitsOfTile; ++i) {
            Ints pairs[4] = {zero_ints(), zero_ints(), zero_ints(), zero_ints()};
            const int64_t unit = tile * kUnitsOfTile + i;
            if (unit < units_) {
                reader_.read(unit, pairs);
            }
            TACHO_UNROLL for (int j = 0; j < 4; ++j) {
                store_ints(to.pairs[i * 4 + j], pairs[j]);
            }
        }
    }

    /* Asks for what is read some time after this tile. */
    TACHO_INLINE void ask_for(int64_t tile) const {
        for (int64_t i = 0; i < kUnitsOfTile; ++i) {
            reader_.ask_for(tile * kUnitsOfTile + i + kUnitsAhead);
        }
    }

  private:
    BFloatReader reader_;
    int64_t units_;
};

/* Where tiles of up to 16 rows of x are: in their memory, but the last of a k that is no multiple of 32. */
class TilesOfX {
  public:
    TACHO_INLINE TilesOfX(const tacho_matmul_params& p, int64_t row, int64_t rows)
        : x_(static_cast<const uint8_t*>(x_row(p, row))), distance_(p.x_row_bytes), whole_(p.k / kTileK) {
        const int64_t bytes = (p.k % kTileK + 1) / 2 * 4;
        if (bytes != 0) {
            for (int64_t r = 0; r < rows; ++r) {
                __builtin_memset(last_[r], 0, sizeof last_[r]);
                __builtin_memcpy(last_[r], x_ + r * distance_ + whole_ * kTileK * 2, static_cast<unsigned long>(bytes));
            }
        }
    }

    template <int to>
    TACHO_INLINE void load(int64_t tile) const {
        const bool inside = tile < whole_;
        tile_load<to>(inside ? x_ + tile * kTileK * 2 : last_[0], inside ? distance_ : kTileK * 2);
    }

  private:
    const uint8_t* x_;
    int64_t distance_;
    int64_t whole_;
    alignas(64) uint8_t last_[kTileRows][kTileK * 2];
};

using TileSums = float[kTileRows][kPanelRows];

/* totals += the sums of a run in a register, which is left as it is. */
template <int sums>
TACHO_INLINE void add_run(float (*totals)[kPanelRows], int64_t rows, bool starts) {
    alignas(64) TileSums run;
    tile_store<sums>(run, 64);
    for (int64_t r = 0; r < rows; ++r) {
        store(totals[r], add(starts ? zero() : load(totals[r]), load(run[r])));
    }
}

/* Denormals are 0 as in products of tiles, until the end of a scope. */
class DenormalsAreZero {
  public:
    DenormalsAreZero() : before_(_mm_getcsr()) {
        constexpr unsigned int kFlushResults = 0x8000;
        constexpr unsigned int kOperandsAreZero = 0x0040;
        _mm_setcsr(before_ | kFlushResults | kOperandsAreZero);
    }
    DenormalsAreZero(const DenormalsAreZero&) = delete;
    DenormalsAreZero& operator=(const DenormalsAreZero&) = delete;
    ~DenormalsAreZero() { _mm_setcsr(before_); }

  private:
    unsigned int before_;
};

/* So few rows that tiles would wait for unpacked weights. */
struct RowsWithoutTiles {
    static constexpr int kRows = 3;
    static constexpr int panels(int rows, bool) { return rows == 1 ? 4 : 2; }

    static void multiply(const tacho_matmul_params& p, int64_t begin, int64_t end) {
        const DenormalsAreZero scope;
        multiply_rows<RowsWithoutTiles, true, kRows>(p, begin, end);
    }

    template <int R, int P>
    TACHO_APART static void run(const tacho_matmul_params& p, int64_t row, int64_t panel, bool) {
        BFloatReader w[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = BFloatReader(p.w, panel + i, p.n, p.k);
        }
        const int64_t units = BFloatPanel::units_of(p.k);
        alignas(64) float x[R][kTiledRunK];
        Vec total[R][P];
        clear(total);
        for (int64_t from = 0; from < p.k; from += kTiledRunK) {
            for (int r = 0; r < R; ++r) {
                widen_run(static_cast<const BFloat*>(x_row(p, row + r)) + from, smaller(kTiledRunK, p.k - from), x[r]);
            }
            Vec sum[R][P];
            clear(sum);
            for (int64_t k = from; k < smaller(from + kTiledRunK, p.k); k += kTileK) {
                Vec even[R][P];
                Vec odd[R][P];
                clear(even);
                clear(odd);
                const int64_t unit = k / UnitBF16::kElements;
                for (int64_t u = unit; u < smaller(unit + kUnitsOfTile, units); ++u) {
                    TACHO_UNROLL for (int i = 0; i < P; ++i) {
                        w[i].ask_for(u + kUnitsAhead);
                    }
                    multiply_unit(even, odd, w, u, x, u * UnitBF16::kElements - from);
                }
                TACHO_UNROLL for (int r = 0; r < R; ++r) {
                    TACHO_UNROLL for (int i = 0; i < P; ++i) {
                        sum[r][i] = add(sum[r][i], add(even[r][i], odd[r][i]));
                    }
                }
            }
            TACHO_UNROLL for (int r = 0; r < R; ++r) {
                TACHO_UNROLL for (int i = 0; i < P; ++i) {
                    total[r][i] = add(total[r][i], sum[r][i]);
                }
            }
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                put_result(p, row + r, panel + i, total[r][i]);
            }
        }
    }

  private:
    /* `count` elements as floats, up to the end of a tile followed by zeros. */
    static TACHO_INLINE void widen_run(const BFloat* from, int64_t count, float* to) {
        for (int64_t k = 0; k < (count + kTileK - 1) / kTileK * kTileK; k += 16) {
            store(to + k, load_partial(from + k, larger(0, smaller(16, count - k))));
        }
    }

    /* Chains += unit u times the x from `at` on. */
    template <int R, int P>
    static TACHO_INLINE void multiply_unit(Vec (&even)[R][P], Vec (&odd)[R][P], BFloatReader (&w)[P], int64_t u,
                                           const float (&x)[R][kTiledRunK], int64_t at) {
        Ints pairs[P][4];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i].read(u, pairs[i]);
        }
        TACHO_UNROLL for (int j = 0; j < 4; ++j) {
            TACHO_UNROLL for (int r = 0; r < R; ++r) {
                const Vec first = broadcast(x[r][at + 2 * j]);
                const Vec second = broadcast(x[r][at + 2 * j + 1]);
                TACHO_UNROLL for (int i = 0; i < P; ++i) {
                    even[r][i] = fma(first, first_floats(pairs[i][j]), even[r][i]);
                    odd[r][i] = fma(second, second_floats(pairs[i][j]), odd[r][i]);
                }
            }
        }
    }
};

/* Up to 16 rows. */
class FewTiledRows {
  public:
    static void multiply(const tacho_matmul_params& p, int64_t begin, int64_t end) {
        Tiles tiles;
        TileShapes shapes;
        for (int sums = 0; sums < kPanels; ++sums) {
            shapes.set(sums, p.m, 64);
        }
        shapes.set(4, p.m, kTileK * 2);
        shapes.set(5, kTileK / 2, 64);
        tiles.shape(shapes);
        const TilesOfX x(p, 0, p.m);
        int64_t panel = begin;
        for (; panel + kPanels <= end; panel += kPanels) {
            multiply_panels<kPanels>(p, x, panel);
        }
        for (; panel < end; ++panel) {
            multiply_panels<1>(p, x, panel);
        }
    }

  private:
    static constexpr int kPanels = 4;
    /* Tiles that are unpacked before they are multiplied: what was just stored is not at once there for tile_load. */
    static constexpr int64_t kChunk = 2;

    template <int P>
    TACHO_APART static void multiply_panels(const tacho_matmul_params& p, const TilesOfX& x, int64_t panel) {
        TileReader w[P];
        for (int i = 0; i < P; ++i) {
            w[i] = TileReader(p, panel + i);
        }
        BFloatTileBytes chunk[P][kChunk];
        alignas(64) TileSums totals[P];
        const int64_t count = (p.k + kTileK - 1) / kTileK;
        constexpr int64_t run = kTiledRunK / kTileK;
        for (int64_t from = 0; from < count; from += run) {
            const int64_t to = smaller(from + run, count);
            clear_sums<P>();
            for (int64_t at = from; at < to; at += kChunk) {
                const int64_t tiles = smaller(kChunk, to - at);
                TACHO_UNROLL for (int i = 0; i < P; ++i) {
                    for (int64_t t = 0; t < tiles; ++t) {
                        w[i].ask_for(at + t);
                        w[i].read(at + t, chunk[i][t]);
                    }
                }
                for (int64_t t = 0; t < tiles; ++t) {
                    x.load<4>(at + t);
                    multiply_tile<0, P>(chunk, t);
                }
            }
            add_runs<0, P>(totals, p.m, from == 0);
        }
        for (int i = 0; i < P; ++i) {
            for (int64_t r = 0; r < p.m; ++r) {
                put_result(p, r, panel + i, load(totals[i][r]));
            }
        }
    }

    template <int P>
    static TACHO_INLINE void clear_sums() {
        tile_zero<0>();
        if constexpr (P > 1) {
            tile_zero<1>();
            tile_zero<2>();
            tile_zero<3>();
        }
    }
    template <int i, int P>
    static TACHO_INLINE void multiply_tile(const BFloatTileBytes (&chunk)[P][kChunk], int64_t t) {
        if constexpr (i < P) {
            tile_load<5>(chunk[i][t].pairs, 64);
            tile_dot_bfloats<i, 4, 5>();
            multiply_tile<i + 1, P>(chunk, t);
        }
    }
    template <int i, int P>
    static TACHO_INLINE void add_runs(TileSums (&totals)[P], int64_t rows, bool starts) {
        if constexpr (i < P) {
            add_run<i>(totals[i], rows, starts);
            add_runs<i + 1, P>(totals, rows, starts);
        }
    }
};

/* More than 16 rows: in tiles of up to 32, two of 16. */
class ManyTiledRows {
  public:
    static void multiply(const tacho_matmul_params& p, int64_t begin, int64_t end) {
        ManyTiledRows scratch;
        const int64_t blocks = (p.m + kBlockRows - 1) / kBlockRows;
        for (int64_t panel = begin; panel < end; panel += kPanels) {
            for (int64_t b = 0; b < blocks; ++b) {
                const int64_t row = b * p.m / blocks;
                scratch.multiply_group(p, row, (b + 1) * p.m / blocks - row, panel, smaller(kPanels, end - panel));
            }
        }
    }

  private:
    static constexpr int64_t kPanels = 8;
    static constexpr int64_t kBlockRows = 256;
    static constexpr int64_t kRunTiles = kTiledRunK / kTileK;

    void multiply_group(const tacho_matmul_params& p, int64_t row, int64_t rows, int64_t panel, int64_t panels) {
        TileReader w[kPanels];
        for (int64_t i = 0; i < panels; ++i) {
            w[i] = TileReader(p, panel + i);
        }
        const int64_t count = (p.k + kTileK - 1) / kTileK;
        const int64_t tiles = (rows + 2 * kTileRows - 1) / (2 * kTileRows);
        for (int64_t from = 0; from < count; from += kRunTiles) {
            const int64_t to = smaller(from + kRunTiles, count);
            for (int64_t i = 0; i < panels; ++i) {
                for (int64_t t = from; t < to; ++t) {
                    w[i].read(t, weights_[i][t - from]);
                }
            }
            for (int64_t t = 0; t < tiles; ++t) {
                const int64_t first = t * rows / tiles;
                multiply_rows(p, row, first, (t + 1) * rows / tiles - first, panels, from, to);
            }
        }
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t i = 0; i < panels; ++i) {
                put_result(p, row + r, panel + i, load(totals_[i][r]));
            }
        }
    }

    /* Rows [first, first + rows) of the block that begins at `row`; at least two. */
    void multiply_rows(const tacho_matmul_params& p, int64_t row, int64_t first, int64_t rows, int64_t panels,
                       int64_t from, int64_t to) {
        const int64_t upper = rows / 2;
        shape(upper, rows - upper);
        const TilesOfX a(p, row + first, upper);
        const TilesOfX b(p, row + first + upper, rows - upper);
        int64_t i = 0;
        for (; i + 2 <= panels; i += 2) {
            multiply_tiles<2>(a, b, i, from, to);
            add_run<0>(totals_[i] + first, upper, from == 0);
            add_run<1>(totals_[i + 1] + first, upper, from == 0);
            add_run<2>(totals_[i] + first + upper, rows - upper, from == 0);
            add_run<3>(totals_[i + 1] + first + upper, rows - upper, from == 0);
        }
        if (i < panels) {
            multiply_tiles<1>(a, b, i, from, to);
            add_run<0>(totals_[i] + first, upper, from == 0);
            add_run<2>(totals_[i] + first + upper, rows - upper, from == 0);
        }
    }

    template <int P>
    TACHO_INLINE void multiply_tiles(const TilesOfX& a, const TilesOfX& b, int64_t panel, int64_t from, int64_t to) const {
        tile_zero<0>();
        tile_zero<1>();
        tile_zero<2>();
        tile_zero<3>();
        for (int64_t t = from; t < to; ++t) {
            a.load<4>(t);
            tile_load<6>(weights_[panel][t - from].pairs, 64);
            tile_dot_bfloats<0, 4, 6>();
            b.load<5>(t);
            tile_dot_bfloats<2, 5, 6>();
            if constexpr (P == 2) {
                tile_load<7>(weights_[panel + 1][t - from].pairs, 64);
                tile_dot_bfloats<1, 4, 7>();
                tile_dot_bfloats<3, 5, 7>();
            }
        }
    }

    void shape(int64_t upper, int64_t lower) {
        if (upper == upper_ && lower == lower_) {
            return;
        }
        upper_ = upper;
        lower_ = lower;
        TileShapes shapes;
        for (int panel = 0; panel < 2; ++panel) {
            shapes.set(panel, upper, 64);
            shapes.set(2 + panel, lower, 64);
            shapes.set(6 + panel, kTileK / 2, 64);
        }
        shapes.set(4, upper, kTileK * 2);
        shapes.set(5, lower, kTileK * 2);
        tiles_.shape(shapes);
    }

    Tiles tiles_;
    int64_t upper_ = 0;
    int64_t lower_ = 0;
    BFloatTileBytes weights_[kPanels][kRunTiles];
    alignas(64) float totals_[kPanels][kBlockRows][kPanelRows];
};

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif

#endif
