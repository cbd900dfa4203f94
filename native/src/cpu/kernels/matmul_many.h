/*
 * Many rows against weights that are unpacked before: a run of k at a time of a group of panels and a block of rows:
 *
 *   for each group of panels, for each block of rows, for each run of k
 *     the run of the panels is unpacked, once for all rows of the block
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

/*
 * How the tiles of many rows see a panel:
 *
 *   kGroup, kBlockRows       panels of a group, rows of a block
 *   kPanels, kRows           of a tile
 *   kStepElements            k of a step
 *   X                        what a step takes of a row of x
 *   at                       where the packed weights of a step of a panel are
 *   unpack                   steps [from, to), to scratch; called in ascending order
 *   multiply                 sum += a step of the unpacked panels
 */
struct FloatSteps {
    static constexpr int64_t kBlockRows = 256;
    static constexpr int kRows = kFloatRows;
    static constexpr int kPanels = tile_panels(kFloatRows);
    static constexpr int64_t kStepElements = 1;
    using X = float;

    template <int R, int P>
    static TACHO_INLINE void multiply(Vec (&sum)[R][P], const uint8_t* const (&w)[P], const float* const (&x)[R],
                                      int64_t step) {
        Vec weight[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            weight[i] = load(reinterpret_cast<const float*>(w[i]) + step * kPanelRows);
        }
        multiply_step(sum, weight, x, step);
    }
};

/* A panel of elements of two bytes, which become floats. */
template <class Element>
class WidenedPanel : public FloatSteps {
  public:
    static constexpr int64_t kGroup = 4;

    WidenedPanel() = default;
    TACHO_INLINE WidenedPanel(const tacho_matmul_params& p, int64_t panel)
        : elements_(panel_at(static_cast<const Element*>(nullptr), p.w, panel, p.k)) {}

    static TACHO_INLINE const uint8_t* at(const tacho_matmul_params& p, int64_t panel, int64_t step) {
        const Element* elements = panel_at(static_cast<const Element*>(nullptr), p.w, panel, p.k);
        return reinterpret_cast<const uint8_t*>(elements + step * kPanelRows);
    }

    TACHO_INLINE void unpack(int64_t from, int64_t to, uint8_t* scratch) {
        auto* floats = reinterpret_cast<float*>(scratch);
        for (int64_t k = from; k < to; ++k) {
            store(floats + (k - from) * kPanelRows, load(elements_ + k * kPanelRows));
        }
    }

  private:
    const Element* elements_;
};

#if TACHO_BFLOAT_PRODUCTS
struct BFloatSteps {
    static constexpr int64_t kBlockRows = 512;
    static constexpr int kRows = kBFloatRows;
    static constexpr int kPanels = bfloat_panels(kBFloatRows);
    static constexpr int64_t kStepElements = tacho::TACHO_ISA_NAMESPACE::kStepElements;
    using X = BFloatX;

    template <int R, int P>
    static TACHO_INLINE void multiply(Vec (&sum)[R][P], const uint8_t* const (&w)[P], const BFloatX* const (&x)[R],
                                      int64_t step) {
        Ints pairs[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            pairs[i] = load_codes(w[i] + step * kPanelRows * 4);
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                dot_bfloats(sum[r][i], pairs[i], x[r] + step);
            }
        }
    }
};
#else
using BFloatSteps = FloatSteps;
#endif

/* A panel of BF16, which becomes what products take: pairs or floats. */
class UnpackedBFloats : public BFloatSteps {
  public:
    static constexpr int64_t kGroup = kPanels;

    UnpackedBFloats() = default;
    TACHO_INLINE UnpackedBFloats(const tacho_matmul_params& p, int64_t panel) : reader_(p.w, panel, p.n, p.k) {}

    static TACHO_INLINE const uint8_t* at(const tacho_matmul_params& p, int64_t panel, int64_t step) {
        const BFloatPanel place = BFloatPanel::of(const_cast<void*>(p.w), panel, p.n, p.k);
        return reinterpret_cast<const uint8_t*>(place.units + step / kUnitSteps);
    }

    TACHO_INLINE void unpack(int64_t from, int64_t to, uint8_t* scratch) {
        for (int64_t step = from; step < to; step += kUnitSteps) {
            Ints pairs[4];
            reader_.read(step / kUnitSteps, pairs);
            TACHO_UNROLL for (int i = 0; i < 4; ++i) {
#if TACHO_BFLOAT_PRODUCTS
                store_ints(scratch + i * kPanelRows * 4, pairs[i]);
#else
                auto* floats = reinterpret_cast<float*>(scratch);
                store(floats + 2 * i * kPanelRows, first_floats(pairs[i]));
                store(floats + (2 * i + 1) * kPanelRows, second_floats(pairs[i]));
#endif
            }
            scratch += kUnitSteps * kPanelRows * 4;
        }
    }

  private:
    BFloatReader reader_;
};

/* Totals of a block of rows, and the weights of a run, of 4 bytes a step and output: on the stack, each 64 KiB at most. */
template <class Panel>
struct ManyScratch {
    alignas(64) float totals[Panel::kGroup][Panel::kBlockRows][kPanelRows];
    alignas(64) uint8_t weights[Panel::kGroup][kRun * kPanelRows * 4];
};

/* The packed weights of the run that comes next, asked for little by little while another one is multiplied. */
template <class Panel>
class NextRun {
  public:
    /* Steps [from, to) of panels [panel, panel + panels). */
    NextRun(const tacho_matmul_params& p, int64_t panel, int64_t panels, int64_t from, int64_t to) : panels_(panels) {
        for (int64_t i = 0; i < panels; ++i) {
            at_[i] = Panel::at(p, panel + i, from);
            lines_ = (Panel::at(p, panel + i, to) - at_[i] + 63) / 64;
        }
    }

    /* Part t of `parts` of panels [panel, panel + count) of the group. */
    TACHO_INLINE void ask_for(int64_t panel, int64_t count, int64_t t, int64_t parts) const {
        for (int64_t i = panel; i < smaller(panel + count, panels_); ++i) {
            for (int64_t line = t * lines_ / parts; line < (t + 1) * lines_ / parts; ++line) {
                __builtin_prefetch(at_[i] + line * 64, 0, 2);
            }
        }
    }

  private:
    const int64_t panels_;
    int64_t lines_ = 0;
    const uint8_t* at_[Panel::kGroup];
};

/* Rows [row, row + rows) against panels [panel, panel + panels), of `count` steps the run [from, to). */
template <class Panel>
struct RunOfGroup {
    using X = typename Panel::X;

    const tacho_matmul_params& p;
    int64_t row;
    int64_t rows;
    int64_t panel;
    int64_t panels;
    int64_t from;
    int64_t to;
    int64_t count;
    const NextRun<Panel>& next;
    ManyScratch<Panel>& scratch;

    void multiply() const {
        constexpr int wide = Panel::kPanels;
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
        const int64_t tiles = (rows + Panel::kRows - 1) / Panel::kRows;
        for (int64_t t = 0; t < tiles; ++t) {
            const int64_t first_row = t * rows / tiles;
            const Tile<P> tile{*this, first_row, first_panel};
            next.ask_for(first_panel, P, t, tiles);
            with_rows<Panel::kRows>((t + 1) * rows / tiles - first_row, tile);
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
            group.template multiply_tile<R, P>(first_row, first_panel);
        }
    };

    template <int R, int P>
    TACHO_APART void multiply_tile(int64_t first_row, int64_t first_panel) const {
        const X* x[R];
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            x[r] = static_cast<const X*>(x_row(p, row + first_row + r)) + from;
        }
        const uint8_t* w[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = scratch.weights[first_panel + i];
        }
        Vec sum[R][P];
        clear(sum);
        const int64_t steps = to - from;
        for (int64_t step = 0; step < steps; ++step) {
            Panel::multiply(sum, w, x, step);
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                const Vec total = from == 0 ? zero() : load(scratch.totals[first_panel + i][first_row + r]);
                sum[r][i] = add(total, sum[r][i]);
            }
        }
        if (to < count) {
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
    ManyScratch<Panel> scratch;
    const int64_t count = (p.k + Panel::kStepElements - 1) / Panel::kStepElements;
    const int64_t blocks = (p.m + Panel::kBlockRows - 1) / Panel::kBlockRows;
    for (int64_t panel = begin; panel < end; panel += Panel::kGroup) {
        const int64_t panels = smaller(Panel::kGroup, end - panel);
        for (int64_t block = 0; block < blocks; ++block) {
            const int64_t row = block * p.m / blocks;
            const int64_t rows = (block + 1) * p.m / blocks - row;
            Panel group[Panel::kGroup];
            for (int64_t i = 0; i < panels; ++i) {
                group[i] = Panel(p, panel + i);
            }
            for (int64_t from = 0; from < count; from += kRun) {
                const int64_t to = smaller(from + kRun, count);
                for (int64_t i = 0; i < panels; ++i) {
                    group[i].unpack(from, to, scratch.weights[i]);
                }
                const bool last = to == count;
                const int64_t next_panel = last && block + 1 == blocks ? panel + Panel::kGroup : panel;
                const int64_t next_from = last ? 0 : to;
                const NextRun<Panel> next(p, next_panel, smaller(Panel::kGroup, end - next_panel), next_from,
                                          smaller(next_from + kRun, count));
                RunOfGroup<Panel>{p, row, rows, panel, panels, from, to, count, next, scratch}.multiply();
            }
        }
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
