/*
 * Matmul with float activations; weights become floats in registers.
 *
 * The k of an output is summed in runs of 256 that are then added up: one chain over all of k would lose about four
 * times as much at k = 4096.
 */
#include "tile.h"
#include "weights.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

constexpr int64_t kRun = 256;
static_assert(kRun % kQuantBlock == 0, "a run is whole blocks");

template <int R, int P, class Element>
TACHO_INLINE void multiply_run(Vec (&sum)[R][P], const Element* const (&w)[P], const float* const (&x)[R], int64_t from,
                               int64_t to) {
    multiply(sum, w, kPanelRows, x, from, to, WholePanel{});
}

template <int R, int P>
TACHO_INLINE void multiply_run(Vec (&sum)[R][P], const UnitQ8_0* const (&w)[P], const float* const (&x)[R],
                               int64_t from, int64_t to) {
    for (int64_t k = from; k < to; k += kQuantBlock) {
        const int64_t unit = k / kQuantBlock;
        Vec scale[P];
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            scale[p] = load(w[p][unit].scale);
        }
        for (int64_t i = 0; i < kQuantBlock; ++i) {
            Vec weight[P];
            TACHO_UNROLL for (int p = 0; p < P; ++p) {
                weight[p] = mul(load_int8(w[p][unit].code[i]), scale[p]);
            }
            multiply_step(sum, weight, x, k + i);
        }
    }
}

template <int R, int P>
TACHO_INLINE void multiply_run(Vec (&sum)[R][P], const UnitQ4_0* const (&w)[P], const float* const (&x)[R],
                               int64_t from, int64_t to) {
    constexpr int64_t half = kQuantBlock / 2;
    for (int64_t k = from; k < to; k += kQuantBlock) {
        const int64_t unit = k / kQuantBlock;
        Vec scale[P];
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            scale[p] = load(w[p][unit].scale);
        }
        for (int64_t i = 0; i < half; ++i) {
            Vec weight[P];
            TACHO_UNROLL for (int p = 0; p < P; ++p) {
                weight[p] = mul(load_low_nibbles(w[p][unit].codes[i]), scale[p]);
            }
            multiply_step(sum, weight, x, k + i);
            TACHO_UNROLL for (int p = 0; p < P; ++p) {
                weight[p] = mul(load_high_nibbles(w[p][unit].codes[i]), scale[p]);
            }
            multiply_step(sum, weight, x, k + half + i);
        }
    }
}

/* y of R rows and the columns of P panels. */
template <int R, int P, class Unit>
void matmul_tile(const tacho_matmul_params& p, const Unit* type, int64_t row, int64_t panel) {
    const Unit* w[P];
    const float* x[R];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        w[i] = panel_at(type, p.w, panel + i, p.k);
    }
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        x[r] = p.x + (row + r) * p.ldx;
    }
    Vec total[R][P];
    clear(total);
    for (int64_t from = 0; from < p.k; from += kRun) {
        Vec sum[R][P];
        clear(sum);
        multiply_run(sum, w, x, from, smaller(from + kRun, p.k));
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                total[r][i] = add(total[r][i], sum[r][i]);
            }
        }
    }
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        const int64_t column = (panel + i) * kPanelRows;
        const int64_t columns = smaller(kPanelRows, p.n - column);
        const Vec bias = p.bias == nullptr ? zero() : load_partial(p.bias + column, columns);
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            float* y = p.y + (row + r) * p.ldy + column;
            const Vec value = p.bias == nullptr ? total[r][i] : add(total[r][i], bias);
            if (columns == kPanelRows) {
                store(y, value);
            } else {
                store_partial(y, value, columns);
            }
        }
    }
}

/* Some rows against panels [begin, end). */
template <class Unit>
struct RowTile {
    const tacho_matmul_params& p;
    const Unit* type;
    int64_t row;
    int64_t begin;
    int64_t end;

    template <int R>
    void run() const {
        constexpr int wide = tile_panels(R);
        int64_t panel = begin;
        for (; panel + wide <= end; panel += wide) {
            matmul_tile<R, wide>(p, type, row, panel);
        }
        for (; panel < end; ++panel) {
            matmul_tile<R, 1>(p, type, row, panel);
        }
    }
};
template <class Unit>
RowTile(const tacho_matmul_params&, const Unit*, int64_t, int64_t, int64_t) -> RowTile<Unit>;

}  // namespace

void matmul(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    /* Few panels at a time, so that they stay in the cache while all rows pass. */
    constexpr int64_t panels = tile_panels(1);
    with_weight_type(p.dtype, [&](const auto* type) {
        for (int64_t panel = begin; panel < end; panel += panels) {
            for (int64_t row = 0; row < p.m; row += kTileRows) {
                with_rows(smaller(kTileRows, p.m - row), RowTile{p, type, row, panel, smaller(panel + panels, end)});
            }
        }
    });
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
