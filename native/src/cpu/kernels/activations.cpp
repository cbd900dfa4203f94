/* Packing of activations: once a row, for every matmul that reads it. */
#include "activations.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

int32_t activation_format(int32_t dtype) {
    switch (dtype) {
        case TACHO_DTYPE_F32:
        case TACHO_DTYPE_F16:
            return TACHO_ACTIVATION_F32;
        case TACHO_DTYPE_BF16:
            return TACHO_BFLOAT_PRODUCTS ? TACHO_ACTIVATION_BF16 : TACHO_ACTIVATION_F32;
        default:
            return TACHO_ACTIVATION_INT8;
    }
}

int64_t activation_bytes(int32_t format, int64_t k) {
    switch (format) {
        case TACHO_ACTIVATION_INT8:
            return k / kActivationBlock * kBlockBytes;
        case TACHO_ACTIVATION_BF16:
            return (k + 1) / 2 * 4;
        default:
            return k * 4;
    }
}

void activation_pack(const tacho_activation_pack_params& p, int64_t begin, int64_t end) {
    for (int64_t r = 0; r < p.m; ++r) {
        const float* x = p.x + r * p.ldx;
        void* row = activation_row(p.packed, p.row_bytes, r);
        for (int64_t at = begin * kActivationBlock; at < smaller(end * kActivationBlock, p.k); at += kActivationBlock) {
            const int64_t count = smaller(kActivationBlock, p.k - at);
            const Vec low = load_partial(x + at, smaller(count, 16));
            const Vec high = count > 16 ? load_partial(x + at + 16, count - 16) : zero();
            put_activations(p.format, row, p.k, at, low, high);
        }
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
