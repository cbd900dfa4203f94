/*
 * Matmul with weights of floats, and the choice of the matmul for a type.
 *
 * The k of an output is summed in runs of kRun that are then added up: one chain over all of k would lose about four
 * times as much at k = 4096.
 */
#include "matmul_many.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* How far ahead the weights are fetched, in bytes of a panel; not for a single row that reads one panel as a stream. */
constexpr int64_t kAhead = 1024;
template <int R>
constexpr bool streams() {
    return kFollowsStreams && R == 1;
}

/* Adds the runs of one tile up: run(sum, from, to) adds the products of [from, to). */
template <int R, int P, class Run>
TACHO_INLINE void sum_runs(const tacho_matmul_params& p, int64_t row, int64_t panel, int64_t k, Run run) {
    Vec total[R][P];
    clear(total);
    for (int64_t from = 0; from < k; from += kRun) {
        Vec sum[R][P];
        clear(sum);
        run(sum, from, smaller(from + kRun, k));
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
        sum_runs<R, P>(p, row, panel, p.k, [&](Vec(&sum)[R][P], int64_t from, int64_t to) {
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

#if TACHO_BFLOAT_PRODUCTS
/* Two k at a time: products of bfloats are exact, and are added to a float. */
struct BFloatTile {
    static constexpr int kRows = kFloatRows;
    static constexpr int kFewRows = kRows;
    static constexpr int panels(int rows, bool few) { return few && kFollowsStreams && rows == 1 ? 1 : tile_panels(rows); }

    template <int R, int P>
    TACHO_APART static void run(const tacho_matmul_params& p, int64_t row, int64_t panel, bool first) {
        const BFloatPair* w[P];
        const BFloatPair* x[R];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = panel_at(static_cast<const BFloatPair*>(nullptr), p.w, panel + i, p.k);
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            x[r] = static_cast<const BFloatPair*>(x_row(p, row + r));
        }
        const bool fetch = first && !streams<R>();
        sum_runs<R, P>(p, row, panel, (p.k + 1) / 2, [&](Vec(&sum)[R][P], int64_t from, int64_t to) {
            constexpr int64_t ahead = kAhead / static_cast<int64_t>(sizeof(BFloatPair));
            for (int64_t k = from; k < to; ++k) {
                Ints weight[P];
                TACHO_UNROLL for (int i = 0; i < P; ++i) {
                    const BFloatPair* at = w[i] + k * kPanelRows;
                    if (fetch) {
                        __builtin_prefetch(at + ahead);
                    }
                    weight[i] = load_codes(reinterpret_cast<const uint8_t*>(at));
                }
                TACHO_UNROLL for (int r = 0; r < R; ++r) {
                    TACHO_UNROLL for (int i = 0; i < P; ++i) {
                        dot_bfloats(sum[r][i], weight[i], x[r] + k);
                    }
                }
            }
        });
    }
};
#endif

template <class Element>
void multiply(const Element*, const tacho_matmul_params& p, int64_t begin, int64_t end) {
    if constexpr (kConvertsRuns && sizeof(Element) < sizeof(float)) {
        if (p.m >= kManyRows) {
            return multiply_many<Element>(p, begin, end);
        }
    }
    multiply_tiles<FloatTile<Element>>(p, begin, end);
}
#if TACHO_BFLOAT_PRODUCTS
void multiply(const BFloatPair*, const tacho_matmul_params& p, int64_t begin, int64_t end) {
    multiply_tiles<BFloatTile>(p, begin, end);
}
#endif

}  // namespace

void matmul(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    switch (p.dtype) {
        case TACHO_DTYPE_F32:
            return multiply(static_cast<const float*>(nullptr), p, begin, end);
        case TACHO_DTYPE_F16:
            return multiply(static_cast<const Half*>(nullptr), p, begin, end);
        case TACHO_DTYPE_BF16:
            return multiply(static_cast<const BFloatUnit*>(nullptr), p, begin, end);
        default:
            return matmul_int8(p, begin, end);
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
