/*
 * Sixteen bytes of each of 16 rows, turned so that the rows lie side by side. Written on the compiler's vectors of 16
 * bytes, whose interleaving instructions every instruction set has: they do more bytes a second than memory gives.
 */
#ifndef TACHO_CPU_KERNELS_TRANSPOSE_H
#define TACHO_CPU_KERNELS_TRANSPOSE_H

#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

TACHO_INLINE Bytes16 low_pairs(Words16 a, Words16 b) {
    return Bytes16(__builtin_shuffle(a, b, Words16{0, 8, 1, 9, 2, 10, 3, 11}));
}
TACHO_INLINE Bytes16 high_pairs(Words16 a, Words16 b) {
    return Bytes16(__builtin_shuffle(a, b, Words16{4, 12, 5, 13, 6, 14, 7, 15}));
}
TACHO_INLINE Bytes16 low_pairs(Words32 a, Words32 b) {
    return Bytes16(__builtin_shuffle(a, b, Words32{0, 4, 1, 5}));
}
TACHO_INLINE Bytes16 high_pairs(Words32 a, Words32 b) {
    return Bytes16(__builtin_shuffle(a, b, Words32{2, 6, 3, 7}));
}
TACHO_INLINE Bytes16 low_pairs(Words64 a, Words64 b) {
    return Bytes16(__builtin_shuffle(a, b, Words64{0, 2}));
}
TACHO_INLINE Bytes16 high_pairs(Words64 a, Words64 b) {
    return Bytes16(__builtin_shuffle(a, b, Words64{1, 3}));
}

/* Even words of 32 bits of a, then of b. */
TACHO_INLINE Bytes16 even_words(Bytes16 a, Bytes16 b) {
    return Bytes16(__builtin_shuffle(Words32(a), Words32(b), Words32{0, 2, 4, 6}));
}
TACHO_INLINE Bytes16 odd_words(Bytes16 a, Bytes16 b) {
    return Bytes16(__builtin_shuffle(Words32(a), Words32(b), Words32{1, 3, 5, 7}));
}

/* Even bytes of a, then of b. */
TACHO_INLINE Bytes16 even_bytes(Bytes16 a, Bytes16 b) {
    return __builtin_shuffle(a, b, Bytes16{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30});
}
TACHO_INLINE Bytes16 odd_bytes(Bytes16 a, Bytes16 b) {
    return __builtin_shuffle(a, b, Bytes16{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31});
}

/* Turns a square of words. */
TACHO_INLINE void turn_square(Bytes16 (&v)[4]) {
    const Bytes16 low01 = low_pairs(Words32(v[0]), Words32(v[1]));
    const Bytes16 low23 = low_pairs(Words32(v[2]), Words32(v[3]));
    const Bytes16 high01 = high_pairs(Words32(v[0]), Words32(v[1]));
    const Bytes16 high23 = high_pairs(Words32(v[2]), Words32(v[3]));
    v[0] = low_pairs(Words64(low01), Words64(low23));
    v[1] = high_pairs(Words64(low01), Words64(low23));
    v[2] = low_pairs(Words64(high01), Words64(high23));
    v[3] = high_pairs(Words64(high01), Words64(high23));
}
TACHO_INLINE void turn_square(Bytes16 (&v)[8]) {
    Bytes16 low[4];
    Bytes16 high[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        low[i] = low_pairs(Words16(v[2 * i]), Words16(v[2 * i + 1]));
        high[i] = high_pairs(Words16(v[2 * i]), Words16(v[2 * i + 1]));
    }
    turn_square(low);
    turn_square(high);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        v[i] = low[i];
        v[4 + i] = high[i];
    }
}

/* Sixteen bytes of each of 16 rows, of which row(i) gives those of row i, to words of `width` bytes, 2 or 4, as
 * [16 / width words][16 rows]. */
template <int width, class Row>
TACHO_INLINE void transpose(Row row, uint8_t* to) {
    constexpr int side = 16 / width;
#pragma GCC unroll 4
    for (int first = 0; first < 16; first += side) {
        Bytes16 v[side];
#pragma GCC unroll 8
        for (int i = 0; i < side; ++i) {
            v[i] = row(first + i);
        }
        turn_square(v);
#pragma GCC unroll 8
        for (int i = 0; i < side; ++i) {
            __builtin_memcpy(to + (i * 16 + first) * width, &v[i], sizeof v[i]);
        }
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
