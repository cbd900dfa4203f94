/* Operations on rows of floats that give rows of activations. A row's result depends on that row alone. */
#include "activations.h"
#include "math.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

TACHO_INLINE Vec take(const float* from, int64_t count) {
    return count == 16 ? load(from) : load_partial(from, count);
}

/* Writes the block of a row of n that starts at `at`, in a form; values(at, count) gives up to 16. */
template <class Values>
TACHO_INLINE void put_block(int32_t format, void* row, int64_t n, int64_t at, Values values) {
    const int64_t count = smaller(kActivationBlock, n - at);
    const Vec low = values(at, smaller(count, 16));
    const Vec high = count > 16 ? values(at + 16, count - 16) : zero();
    put_activations(format, row, n, at, low, high);
}

}  // namespace

void rms_norm(const tacho_rms_norm_params& p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const float* x = p.x + i * p.ldx;
        void* y = activation_row(p.y, p.y_row_bytes, i);
        Vec squares = zero();
        for (int64_t at = 0; at < p.n; at += 16) {
            const Vec v = take(x + at, smaller(16, p.n - at));
            squares = fma(v, v, squares);
        }
        const double mean = static_cast<double>(sum_lanes(squares)) / static_cast<double>(p.n);
        const Vec factor = broadcast(static_cast<float>(1 / __builtin_sqrt(mean + static_cast<double>(p.epsilon))));
        const auto normed = [&](int64_t at, int64_t count) {
            return mul(mul(take(x + at, count), factor), take(p.weight + at, count));
        };
        for (int64_t at = 0; at < p.n; at += kActivationBlock) {
            put_block(p.format, y, p.n, at, normed);
        }
    }
}

void silu_mul(const tacho_silu_mul_params& p, int64_t begin, int64_t end) {
    for (int64_t i = 0; i < p.m; ++i) {
        const float* gate = p.gate + i * p.ld_gate;
        const float* up = p.up + i * p.ld_up;
        void* y = activation_row(p.y, p.y_row_bytes, i);
        const auto gated = [&](int64_t at, int64_t count) {
            const Vec g = take(gate + at, count);
            const Vec silu = div(g, add(broadcast(1.0f), exp(sub(zero(), g))));
            return mul(silu, take(up + at, count));
        };
        for (int64_t at = begin * kActivationBlock; at < smaller(end * kActivationBlock, p.n); at += kActivationBlock) {
            put_block(p.format, y, p.n, at, gated);
        }
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
