/*
 * Matmul with weights of floats, and the choice of the matmul for a type.
 *
 * The k of an output is summed in runs of kRun that are then added up: one chain over all of k would lose about four
 * times as much at k = 4096.
 */
#include "matmul_many.h"
#include "tiled_bfloats.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* How far ahead the weights are fetched, in bytes of a panel; not for a single row that reads one panel as a stream. */
constexpr int64_t kAhead = 1024;
template <int R>
constexpr bool streams() {
    return kFollowsStreams && R == 1;
}

/* Adds the runs of one tile up, each of `length` of `count` steps or units: run(sum, from, to) adds the products of
 * [from, to). */
template <int R, int P, class Run>
TACHO_INLINE void sum_runs(const tacho_matmul_params& p, int64_t row, int64_t panel, int64_t count, int64_t length,
                           Run run) {
    Vec total[R][P];
    clear(total);
    for (int64_t from = 0; from < count; from += length) {
        Vec sum[R][P];
        clear(sum);
        run(sum, from, smaller(from + length, count));
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

template <class Element>
struct FloatTile {
    static constexpr int kRows = kFloatRows;
    static constexpr int kFewRows = kRows;
    static constexpr int panels(int rows, bool few) { return few && kFollowsStreams && rows == 1 ? 1 : tile_panels(rows); }

    template <int R, int P>
    TACHO_APART static void run(const tacho_matmul_params& p, int64_t row, int64_t panel, bool first) {
        const Element* w[P];
        const float* x[R];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = panel_at(static_cast<const Element*>(nullptr), p.w, panel + i, p.k);
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            x[r] = static_cast<const float*>(x_row(p, row + r));
        }
        const bool fetch = first && !streams<R>();
        sum_runs<R, P>(p, row, panel, p.k, kRun, [&](Vec(&sum)[R][P], int64_t from, int64_t to) {
            constexpr int64_t ahead = kAhead / static_cast<int64_t>(sizeof(Element));
            for (int64_t k = from; k < to; ++k) {
                Vec weight[P];
                TACHO_UNROLL for (int i = 0; i < P; ++i) {
                    const Element* at = w[i] + k * kPanelRows;
                    if (fetch) {
                        __builtin_prefetch(at + ahead);
                    }
                    weight[i] = load(at);
                }
                multiply_step(sum, weight, x, k);
            }
        });
    }
};

/* BF16: each unit goes from memory into registers and is multiplied there, with all rows of the tile. */
struct BFloatTile {
    static constexpr int kRows = kBFloatRows;
    static constexpr int kFewRows = kRows;
    static constexpr int panels(int rows, bool) { return bfloat_panels(rows); }

    template <int R, int P>
    TACHO_APART static void run(const tacho_matmul_params& p, int64_t row, int64_t panel, bool first) {
        BFloatReader w[P];
        const BFloatX* x[R];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = BFloatReader(p.w, panel + i, p.n, p.k);
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            x[r] = static_cast<const BFloatX*>(x_row(p, row + r));
        }
        const int64_t whole = p.k / UnitBF16::kElements;
        const bool fetch = first && !streams<R>();
        sum_runs<R, P>(p, row, panel, BFloatPanel::units_of(p.k), kRun / kUnitSteps,
                       [&](Vec(&sum)[R][P], int64_t from, int64_t to) {
                           for (int64_t u = from; u < smaller(to, whole); ++u) {
                               if (fetch) {
                                   ask_ahead(w, u);
                               }
                               multiply_unit(sum, w, u, x, u * kUnitSteps);
                           }
                           if (to > whole) {
                               multiply_last(p, sum, w, whole, x);
                           }
                       });
    }

  private:
    template <int P>
    static TACHO_INLINE void ask_ahead(const BFloatReader (&w)[P], int64_t u) {
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i].ask_for(u + kAhead / static_cast<int64_t>(sizeof(UnitBF16)));
        }
    }

    /* Unit u with the x from step `at` on. */
    template <int R, int P>
    static TACHO_INLINE void multiply_unit(Vec (&sum)[R][P], BFloatReader (&w)[P], int64_t u,
                                           const BFloatX* const (&x)[R], int64_t at) {
        Ints pairs[P][4];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i].read(u, pairs[i]);
        }
        TACHO_UNROLL for (int j = 0; j < 4; ++j) {
#if TACHO_BFLOAT_PRODUCTS
            TACHO_UNROLL for (int r = 0; r < R; ++r) {
                TACHO_UNROLL for (int i = 0; i < P; ++i) {
                    dot_bfloats(sum[r][i], pairs[i][j], x[r] + at + j);
                }
            }
#else
            Vec first[P];
            Vec second[P];
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                first[i] = first_floats(pairs[i][j]);
                second[i] = second_floats(pairs[i][j]);
            }
            multiply_step(sum, first, x, at + 2 * j);
            multiply_step(sum, second, x, at + 2 * j + 1);
#endif
        }
    }

    /* The same for a unit that k does not fill. */
    template <int R, int P>
    static TACHO_INLINE void multiply_last(const tacho_matmul_params& p, Vec (&sum)[R][P], BFloatReader (&w)[P],
                                           int64_t u, const BFloatX* const (&x)[R]) {
        BFloatX copies[R][kUnitSteps] = {};
        const BFloatX* padded[R];
        for (int r = 0; r < R; ++r) {
            for (int64_t step = u * kUnitSteps; step * kStepElements < p.k; ++step) {
                copies[r][step - u * kUnitSteps] = x[r][step];
            }
            padded[r] = copies[r];
        }
        multiply_unit(sum, w, u, padded, 0);
    }
};

template <class Element>
void multiply(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    if constexpr (kConvertsRuns && sizeof(Element) < sizeof(float)) {
        if (p.m >= kManyRows) {
            return multiply_many<WidenedPanel<Element>>(p, begin, end);
        }
    }
    multiply_tiles<FloatTile<Element>>(p, begin, end);
}

void multiply_bfloats(const tacho_matmul_params& p, int64_t begin, int64_t end) {
#if TACHO_TILE_PRODUCTS
    if (p.m > kTileRows) {
        return ManyTiledRows::multiply(p, begin, end);
    }
    if (p.m > RowsWithoutTiles::kRows) {
        return FewTiledRows::multiply(p, begin, end);
    }
    RowsWithoutTiles::multiply(p, begin, end);
#else
    if (p.m >= kManyBFloatRows) {
        return multiply_many<UnpackedBFloats>(p, begin, end);
    }
    multiply_tiles<BFloatTile>(p, begin, end);
#endif
}

}  // namespace

void matmul(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    switch (p.dtype) {
        case TACHO_DTYPE_F32:
            return multiply<float>(p, begin, end);
        case TACHO_DTYPE_F16:
            return multiply<Half>(p, begin, end);
        case TACHO_DTYPE_BF16:
            return multiply_bfloats(p, begin, end);
        default:
            return matmul_int8(p, begin, end);
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
