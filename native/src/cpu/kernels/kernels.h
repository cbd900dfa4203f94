/* What every file of this folder starts with: it is compiled once for each instruction set, whose simd.h the include
 * path finds first. Only headers without inline functions of the standard library may be included (see README.md). */
#ifndef TACHO_CPU_KERNELS_KERNELS_H
#define TACHO_CPU_KERNELS_KERNELS_H

#include "cpu/kernel_table.h"
#include "simd.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

int64_t weight_bytes(int32_t dtype, int64_t n, int64_t k);
int64_t attention_scratch(int64_t head_dim);
#define KERNEL(operation) void operation(const tacho_##operation##_params& p, int64_t begin, int64_t end);
#include "cpu/kernels.def"
#undef KERNEL

namespace {

TACHO_INLINE int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}
TACHO_INLINE int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
