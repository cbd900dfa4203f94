/* Operations on rows of floats. A row's result depends on that row alone. */
#include "activations.h"
#include "math.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* Calls body(offset, count) for steps of 16 elements; count is below 16 in the last one only. */
template <class Body>
TACHO_INLINE void each_step(int64_t n, Body body) {
    for (int64_t at = 0; at < n; at += 16) {
        body(at, smaller(16, n - at));
    }
}

TACHO_INLINE Vec take(const float* from, int64_t count) {
    return count == 16 ? load(from) : load_partial(from, count);
}

TACHO_INLINE void put(float* to, Vec v, int64_t count) {
    if (count == 16) {
        store(to, v);
    } else {
        store_partial(to, v, count);
    }
}

}  // namespace

void rms_norm(const tacho_rms_norm_params& p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const float* x = p.x + i * p.ldx;
        void* y = activation_row(p.y, p.y_row_bytes, i);
        Vec squares = zero();
        each_step(p.n, [&](int64_t at, int64_t count) {
            const Vec v = take(x + at, count);
            squares = fma(v, v, squares);
        });
        const double mean = static_cast<double>(sum_lanes(squares)) / static_cast<double>(p.n);
        const Vec factor = broadcast(static_cast<float>(1 / __builtin_sqrt(mean + static_cast<double>(p.epsilon))));
        const auto normed = [&](int64_t at, int64_t count) {
            return mul(mul(take(x + at, count), factor), take(p.weight + at, count));
        };
        for (int64_t at = 0; at < p.n; at += kActivationBlock) {
            const int64_t count = smaller(kActivationBlock, p.n - at);
            const Vec low = normed(at, smaller(count, 16));
            const Vec high = count > 16 ? normed(at + 16, count - 16) : zero();
            put_activations(p.format, y, at, count, low, high);
        }
    }
}

void silu_mul(const tacho_silu_mul_params& p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const float* gate = p.gate + i * p.ld_gate;
        const float* up = p.up + i * p.ld_up;
        float* y = p.y + i * p.ldy;
        each_step(p.n, [&](int64_t at, int64_t count) {
            const Vec g = take(gate + at, count);
            const Vec silu = div(g, add(broadcast(1.0f), exp(sub(zero(), g))));
            put(y + at, mul(silu, take(up + at, count)), count);
        });
    }
}

void add(const tacho_add_params& p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
        const float* a = p.a + i * p.lda;
        const float* b = p.b + i * p.ldb;
        float* y = p.y + i * p.ldy;
        each_step(
            p.n, [&](int64_t at, int64_t count) { put(y + at, add(take(a + at, count), take(b + at, count)), count); });
    }
}

void softmax(const tacho_softmax_params& p, int64_t begin, int64_t end) {
    const Vec scale = broadcast(p.scale);
    for (int64_t i = begin; i < end; ++i) {
        const float* x = p.x + i * p.ldx;
        float* y = p.y + i * p.ldy;
        Vec highest = broadcast(-__builtin_inff());
        each_step(p.n, [&](int64_t at, int64_t count) {
            const Vec v = mul(take(x + at, count), scale);
            highest = max(highest, count == 16 ? v : keep_lanes(v, 0, count, -__builtin_inff()));
        });
        const Vec top = broadcast(max_lane(highest));
        Vec total = zero();
        each_step(p.n, [&](int64_t at, int64_t count) {
            const Vec e = exp(sub(mul(take(x + at, count), scale), top));
            total = add(total, count == 16 ? e : keep_lanes(e, 0, count, 0));
            put(y + at, e, count);
        });
        const Vec factor = broadcast(1 / sum_lanes(total));
        each_step(p.n, [&](int64_t at, int64_t count) { put(y + at, mul(take(y + at, count), factor), count); });
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
