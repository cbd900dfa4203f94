/*
 * The kernels of each instruction set, as declarations and as a table. Arguments have been checked by src/api; kernels
 * of different ranges may run at the same time.
 */
#ifndef TACHO_CPU_KERNEL_TABLE_H
#define TACHO_CPU_KERNEL_TABLE_H

#include <stdint.h>

#include "tacho/tacho.h"

namespace tacho {

/* One instruction set's kernels. */
struct KernelTable {
    const char* name;
    int32_t isa;
    /* Bytes of a packed [n][k] matrix. */
    int64_t (*weight_bytes)(int32_t dtype, int64_t n, int64_t k);
    /* The form in which a matmul with weights of `dtype` reads activations. */
    int32_t (*activation_format)(int32_t dtype);
    /* Bytes of a row of k elements in that form. */
    int64_t (*activation_bytes)(int32_t format, int64_t k);
    /* Floats of scratch of one attention call. */
    int64_t (*attention_scratch)(int64_t head_dim);
#define KERNEL(operation) void (*operation)(const tacho_##operation##_params& p, int64_t begin, int64_t end);
#include "cpu/kernels.def"
#undef KERNEL
};

/* The table of each instruction set; defined by src/cpu/kernels/table.cpp, compiled once for each. */
#define INSTRUCTION_SET(name, number)      \
    namespace name {                       \
    extern const KernelTable kernel_table; \
    }
#include "cpu/instruction_sets.def"
#undef INSTRUCTION_SET

}  // namespace tacho

#endif
