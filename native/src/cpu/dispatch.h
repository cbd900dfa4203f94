/* Which kernels run on this CPU. Any thread. */
#ifndef TACHO_CPU_DISPATCH_H
#define TACHO_CPU_DISPATCH_H

#include <cstdint>

#include "cpu/kernel_table.h"

namespace tacho {

/* Number of the instruction set called `name` (scalar, avx2, avx512, avx512_vnni, avx512_bf16, amx; built or not), 0 for an unknown word. */
int32_t isa_number(const char* name);

/* Name of an instruction set, nullptr for an unknown number and for TACHO_ISA_AUTO. */
const char* isa_name(int32_t isa);

/* CPU features that `isa` needs and this CPU lacks, ended by nullptr; empty if it runs here. */
const char* const* missing_features(int32_t isa);

/* Kernels of `isa`, nullptr if they are not built or cannot run here. */
const KernelTable* find_kernels(int32_t isa);

/* Best kernels of this CPU that are not above `limit`. */
const KernelTable* best_kernels(int32_t limit);

}  // namespace tacho

#endif
