/* From the isa field of a call to its kernels. Any thread. */
#ifndef TACHO_API_ISA_H
#define TACHO_API_ISA_H

#include <cstdint>

#include "cpu/kernel_table.h"

namespace tacho {

/* The kernels of `isa`; AUTO is the best one that the CPU has and the environment's TACHO_MAX_ISA allows, looked up
 * once. TACHO_EINVAL for an unknown number or word, TACHO_EUNSUPPORTED for one that is not to be had here. */
int32_t select_kernels(int32_t isa, const KernelTable** table);

}  // namespace tacho

#endif
