/* What every file of this folder starts with: it is compiled once for each instruction set, whose simd.h the include
 * path finds first. Only headers without inline functions of the standard library may be included (see README.md). */
#ifndef TACHO_CPU_KERNELS_KERNELS_H
#define TACHO_CPU_KERNELS_KERNELS_H

#include "cpu/kernel_table.h"
#include "simd.h"

#define DECLARED(operation) void operation(const tacho_##operation##_params& p, int64_t begin, int64_t end);

namespace tacho {
#ifdef TACHO_FLOAT_KERNELS
/* Compiled for another instruction set, which has all that they need. */
namespace TACHO_FLOAT_KERNELS {
int64_t attention_scratch(int64_t head_dim);
#define KERNEL(operation)
#define FLOAT_KERNEL(operation) DECLARED(operation)
#include "cpu/kernels.def"
#undef KERNEL
}  // namespace TACHO_FLOAT_KERNELS
namespace TACHO_ISA_NAMESPACE {
using TACHO_FLOAT_KERNELS::attention_scratch;
#define KERNEL(operation)
#define FLOAT_KERNEL(operation) using TACHO_FLOAT_KERNELS::operation;
#include "cpu/kernels.def"
#undef KERNEL
}  // namespace TACHO_ISA_NAMESPACE
#endif

namespace TACHO_ISA_NAMESPACE {

int64_t weight_bytes(int32_t dtype, int64_t n, int64_t k);
int32_t activation_format(int32_t dtype);
int64_t activation_bytes(int32_t format, int64_t k);
#define KERNEL(operation) DECLARED(operation)
#ifdef TACHO_FLOAT_KERNELS
#define FLOAT_KERNEL(operation)
#else
int64_t attention_scratch(int64_t head_dim);
#endif
#include "cpu/kernels.def"
#undef KERNEL

namespace {

/* Sixteen bytes as whole numbers of two, four and eight. */
typedef uint16_t Words16 __attribute__((vector_size(16)));
typedef uint32_t Words32 __attribute__((vector_size(16)));
typedef uint64_t Words64 __attribute__((vector_size(16)));

TACHO_INLINE Bytes16 load_bytes(const void* from) {
    Bytes16 bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return bytes;
}
/* count in [0, 16]; the rest is 0 */
TACHO_INLINE Bytes16 load_bytes(const void* from, int64_t count) {
    Bytes16 bytes = {};
    __builtin_memcpy(&bytes, from, static_cast<unsigned long>(count));
    return bytes;
}

TACHO_INLINE int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}
TACHO_INLINE int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
#undef DECLARED

#endif
