/* Rotary position embedding. Plain loops: the compiler's vectors are as good here, and the work is small. */
#include "kernels.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* Turns `pairs` pairs (x[i * first_step], x[i * first_step + distance]). */
template <int64_t first_step>
void turn(const float* __restrict cos_sin, int64_t pairs, int64_t distance, float* __restrict x) {
    for (int64_t i = 0; i < pairs; ++i) {
        const float cos = cos_sin[2 * i];
        const float sin = cos_sin[2 * i + 1];
        const float a = x[i * first_step];
        const float b = x[i * first_step + distance];
        x[i * first_step] = a * cos - b * sin;
        x[i * first_step + distance] = a * sin + b * cos;
    }
}

}  // namespace

void rope(const tacho_rope_params& p, int64_t begin, int64_t end) {
    const int64_t pairs = p.rope_dim / 2;
    for (int64_t t = begin; t < end; ++t) {
        const float* cos_sin = p.cos_sin + t * p.rope_dim;
        for (int64_t head = 0; head < p.num_heads; ++head) {
            float* x = p.x + t * p.ldx + head * p.head_dim;
            if (p.pairing == TACHO_ROPE_ADJACENT) {
                turn<2>(cos_sin, pairs, 1, x);
            } else {
                turn<1>(cos_sin, pairs, pairs, x);
            }
        }
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
