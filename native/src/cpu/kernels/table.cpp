/* The table of one instruction set. */
#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

extern const KernelTable kernel_table = {
    TACHO_ISA_WORD,
    TACHO_ISA_NUMBER,
    weight_bytes,
    activation_format,
    activation_bytes,
    attention_scratch,
#define KERNEL(operation) operation,
#include "cpu/kernels.def"
#undef KERNEL
};

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
