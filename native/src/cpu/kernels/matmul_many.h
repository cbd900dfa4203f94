/*
 * Many rows against weights whose conversion to floats costs as much as products, a run of k at a time of a group of
 * panels and a block of rows:
 *
 *   for each group of panels, for each block of rows, for each run of k
 *     the run of the panels becomes floats, once for all rows of the block
 *     for each tile of the block and the group: its totals += its sums of the run
 *
 * so that the inner loop does nothing but load, broadcast and multiply, out of the nearest caches. An element of y is
 * summed as in the tiles of few rows: one chain within a run, from zero on, and the runs added up.
 */
#ifndef TACHO_CPU_KERNELS_MATMUL_MANY_H
#define TACHO_CPU_KERNELS_MATMUL_MANY_H

#include "bfloats.h"
#include "matmul.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* Of the sum of an output: steps of one chain (matmul.cpp says why); a step is one k, or a pair of bfloats. */
constexpr int64_t kRun = 256;

/* Rows from which on it is faster than to widen two bytes for each tile anew. */
constexpr int64_t kManyRows = 128;

/* Totals and floats of a run: each 64 KiB of the stack. */
constexpr int64_t kBlockRows = 256;
constexpr int64_t kGroupPanels = 4;
struct ManyScratch {
    alignas(64) float totals[kGroupPanels][kBlockRows][kPanelRows];
    alignas(64) float weights[kGroupPanels][kRun * kPanelRows];
};

/* A panel of elements of two bytes, whose runs become floats in ascending order; as many panels in a group. */
template <class Element>
class WidenedPanel {
  public:
    static constexpr int64_t kGroup = kGroupPanels;

    WidenedPanel() = default;
    TACHO_INLINE WidenedPanel(const tacho_matmul_params& p, int64_t panel)
        : elements_(panel_at(static_cast<const Element*>(nullptr), p.w, panel, p.k)) {}

    TACHO_INLINE void convert(int64_t from, int64_t to, float* floats) {
        for (int64_t k = from; k < to; ++k) {
            store(floats + (k - from) * kPanelRows, load(elements_ + k * kPanelRows));
        }
    }

  private:
    const Element* elements_;
};

/* A panel of BF16; while a run is multiplied, the next one comes from memory. */
class UnpackedBFloats {
  public:
    static constexpr int64_t kGroup = tile_panels(kFloatRows);

    UnpackedBFloats() = default;
    TACHO_INLINE UnpackedBFloats(const tacho_matmul_params& p, int64_t panel) : reader_(p.w, panel, p.n, p.k) {}

    TACHO_INLINE void convert(int64_t from, int64_t to, float* floats) {
        for (int64_t k = from; k < to; k += UnitBF16::kElements) {
            Ints pairs[4];
            reader_.ask_for((k + kRun) / UnitBF16::kElements);
            reader_.read(k / UnitBF16::kElements, pairs);
            TACHO_UNROLL for (int i = 0; i < 4; ++i) {
                store(floats + 2 * i * kPanelRows, first_floats(pairs[i]));
                store(floats + (2 * i + 1) * kPanelRows, second_floats(pairs[i]));
            }
            floats += UnitBF16::kElements * kPanelRows;
        }
    }

  private:
    BFloatReader reader_;
};

/* Rows [row, row + rows) against panels [panel, panel + panels), of k the run [from, to). */
struct RunOfGroup {
    const tacho_matmul_params& p;
    int64_t row;
    int64_t rows;
    int64_t panel;
    int64_t panels;
    int64_t from;
    int64_t to;
    ManyScratch& scratch;

    void multiply() const {
        constexpr int wide = tile_panels(kFloatRows);
        int64_t i = 0;
        for (; i + wide <= panels; i += wide) {
            multiply_rows<wide>(i);
        }
        for (; i < panels; ++i) {
            multiply_rows<1>(i);
        }
    }

    template <int P>
    void multiply_rows(int64_t first_panel) const {
        const int64_t tiles = (rows + kFloatRows - 1) / kFloatRows;
        for (int64_t t = 0; t < tiles; ++t) {
            const int64_t first_row = t * rows / tiles;
            const Tile<P> tile{*this, first_row, first_panel};
            with_rows<kFloatRows>((t + 1) * rows / tiles - first_row, tile);
        }
    }

    /* Rows and panels of the tile are counted within the block and the group. */
    template <int P>
    struct Tile {
        const RunOfGroup& group;
        int64_t first_row;
        int64_t first_panel;

        template <int R>
        void run() const {
            group.multiply_tile<R, P>(first_row, first_panel);
        }
    };

    template <int R, int P>
    TACHO_APART void multiply_tile(int64_t first_row, int64_t first_panel) const {
        const float* x[R];
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            x[r] = static_cast<const float*>(x_row(p, row + first_row + r)) + from;
        }
        const float* w[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = scratch.weights[first_panel + i];
        }
        Vec sum[R][P];
        clear(sum);
        const int64_t count = to - from;
        for (int64_t k = 0; k < count; ++k) {
            Vec weight[P];
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                weight[i] = load(w[i] + k * kPanelRows);
            }
            multiply_step(sum, weight, x, k);
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                const Vec total = from == 0 ? zero() : load(scratch.totals[first_panel + i][first_row + r]);
                sum[r][i] = add(total, sum[r][i]);
            }
        }
        if (to < p.k) {
            TACHO_UNROLL for (int r = 0; r < R; ++r) {
                TACHO_UNROLL for (int i = 0; i < P; ++i) {
                    store(scratch.totals[first_panel + i][first_row + r], sum[r][i]);
                }
            }
            return;
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                put_result(p, row + first_row + r, panel + first_panel + i, sum[r][i]);
            }
        }
    }
};

/* All rows against panels [begin, end). */
template <class Panel>
void multiply_many(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    ManyScratch scratch;
    const int64_t blocks = (p.m + kBlockRows - 1) / kBlockRows;
    for (int64_t panel = begin; panel < end; panel += Panel::kGroup) {
        const int64_t panels = smaller(Panel::kGroup, end - panel);
        for (int64_t block = 0; block < blocks; ++block) {
            const int64_t row = block * p.m / blocks;
            const int64_t rows = (block + 1) * p.m / blocks - row;
            Panel group[Panel::kGroup];
            for (int64_t i = 0; i < panels; ++i) {
                group[i] = Panel(p, panel + i);
            }
            for (int64_t from = 0; from < p.k; from += kRun) {
                const int64_t to = smaller(from + kRun, p.k);
                for (int64_t i = 0; i < panels; ++i) {
                    group[i].convert(from, to, scratch.weights[i]);
                }
                RunOfGroup{p, row, rows, panel, panels, from, to, scratch}.multiply();
            }
        }
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
