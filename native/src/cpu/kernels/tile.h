/*
 * One step of matmul's multiply loop for floats: a tile of R rows of x against P panels of 16 columns.
 *
 *   panel     16 outputs side by side, so no sum is ever horizontal
 *   sum[r][p] += x[r][k] * w[p], step k of the panel
 *
 * An element of the sum is one chain of fma in the order of k whatever R and P are: the tile in which a row lies never
 * changes its bits.
 */
#ifndef TACHO_CPU_KERNELS_TILE_H
#define TACHO_CPU_KERNELS_TILE_H

#include "kernels.h"

/* Arrays of vectors stay in registers only where every loop over them is unrolled. */
#define TACHO_UNROLL _Pragma("GCC unroll 8")
/* A function of its own: among the tiles of all other shapes GCC 12 runs out of registers. */
#define TACHO_APART __attribute__((noinline))

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* A number as a type, for generic lambdas. */
template <int N>
struct Count {
    static constexpr int value = N;
};

/* Before sums in memory are added to: else GCC keeps a second copy of them on the stack. */
TACHO_INLINE void stay_in_memory() {
    __asm__ volatile("" ::: "memory");
}

template <int R, int P>
TACHO_INLINE void clear(Vec (&sum)[R][P]) {
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            sum[r][p] = zero();
        }
    }
}

/* sum += x * one step of the panels. A single row waits for memory: its weights need no registers of their own. */
template <int R, int P>
TACHO_INLINE void multiply_step(Vec (&sum)[R][P], const Vec (&weight)[P], const float* const (&x)[R], int64_t k) {
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        const Vec factor = broadcast(x[r][k]);
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            if constexpr (R == 1) {
                sum[r][p] = fma(factor, weight[p], sum[r][p]);
            } else {
                add_product(sum[r][p], factor, weight[p]);
            }
        }
    }
}

/* Calls body with a compile-time number of rows; rows is in [1, most]. */
template <int most, class Body>
TACHO_INLINE void with_rows(int64_t rows, Body body) {
    if constexpr (most > 1) {
        if (rows < most) {
            return with_rows<most - 1>(rows, body);
        }
    }
    return body.template run<most>();
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
