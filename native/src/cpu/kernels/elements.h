/* Element types of weights and caches as C++ types. Included by files that are compiled for one instruction set. */
#ifndef TACHO_CPU_KERNELS_ELEMENTS_H
#define TACHO_CPU_KERNELS_ELEMENTS_H

#include <stdint.h>

#define TACHO_INLINE inline __attribute__((always_inline))

namespace tacho {

/* IEEE half precision. */
struct Half {
    uint16_t bits;
};

/* The upper half of a float. */
struct BFloat {
    uint16_t bits;
};

/* Sixteen bytes, on whose operators every compiler has instructions for every instruction set. */
typedef uint8_t Bytes16 __attribute__((vector_size(16)));

}  // namespace tacho

#endif
