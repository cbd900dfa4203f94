/*
 * The multiply loop of matmul and attention: a tile of R rows of x against P panels of 16 columns.
 *
 *   panel     16 outputs side by side; step k of it lies at w + k * step, so no sum is ever horizontal
 *   sum[r][p] += sum over k in [from, to), ascending, of x[r][k] * w[p][k * step .. + 16)
 *
 * An element of the sum is one chain of fma in the order of k whatever R and P are: the tile in which a row lies never
 * changes its bits.
 */
#ifndef TACHO_CPU_KERNELS_TILE_H
#define TACHO_CPU_KERNELS_TILE_H

#include "kernels.h"

/* Arrays of vectors stay in registers only where every loop over them is unrolled. */
#define TACHO_UNROLL _Pragma("GCC unroll 8")

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* A number as a type, for generic lambdas. */
template <int N>
struct Count {
    static constexpr int value = N;
};

/* Sixteen elements. */
struct WholePanel {
    template <class Element>
    TACHO_INLINE Vec operator()(const Element* from) const {
        return load(from);
    }
};

/* The last panel of a matrix whose columns are no multiple of 16. */
struct PartialPanel {
    int64_t columns;

    template <class Element>
    TACHO_INLINE Vec operator()(const Element* from) const {
        return load_partial(from, columns);
    }
};

template <int R, int P>
TACHO_INLINE void clear(Vec (&sum)[R][P]) {
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            sum[r][p] = zero();
        }
    }
}

/* sum += x * one step of the panels. */
template <int R, int P>
TACHO_INLINE void multiply_step(Vec (&sum)[R][P], const Vec (&weight)[P], const float* const (&x)[R], int64_t k) {
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        const Vec factor = broadcast(x[r][k]);
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            sum[r][p] = fma(factor, weight[p], sum[r][p]);
        }
    }
}

template <int R, int P, class Element, class Panel>
TACHO_INLINE void multiply(Vec (&sum)[R][P], const Element* const (&w)[P], int64_t step, const float* const (&x)[R],
                           int64_t from, int64_t to, Panel panel) {
    for (int64_t k = from; k < to; ++k) {
        Vec weight[P];
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            weight[p] = panel(w[p] + k * step);
        }
        multiply_step(sum, weight, x, k);
    }
}

/* Calls body with a compile-time number of rows; rows is in [1, kTileRows]. */
template <class Body>
TACHO_INLINE void with_rows(int64_t rows, Body body) {
    switch (rows) {
        case 1:
            return body.template run<1>();
        case 2:
            return body.template run<2>();
        case 3:
            return body.template run<3>();
        case 4:
            return body.template run<4>();
        case 5:
            return body.template run<(kTileRows < 5 ? kTileRows : 5)>();
        default:
            return body.template run<(kTileRows < 6 ? kTileRows : 6)>();
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
