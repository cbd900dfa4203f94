/*
 * Softmax while it is being gathered: for each row the highest score so far, the sum of 2^(score - highest) and the
 * values weighted by that. Scores are in units of log2, so that a power is a polynomial and an exponent.
 *
 *   a row   | out [head_dim rounded up to 16] | highest | sum | unused, 14 |       floats
 */
#ifndef TACHO_CPU_KERNELS_ATTENTION_STATE_H
#define TACHO_CPU_KERNELS_ATTENTION_STATE_H

#include "kv_panel.h"
#include "math.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

constexpr float kLog2E = 1.44269504f;

/* Keys [first, last), counted from somewhere. */
struct Keys {
    int64_t first;
    int64_t last;

    bool empty() const { return first >= last; }
    /* Those in [first + from, first + from + count), counted from there. */
    Keys within(int64_t from, int64_t count) const {
        return {larger(first - from, 0), smaller(last - from, count)};
    }
};

/* One row; the memory is the owner's. */
struct State {
    float* out;
    int64_t padded; /* floats of out */

    TACHO_INLINE float& highest() const { return out[padded]; }
    TACHO_INLINE float& sum() const { return out[padded + 1]; }

    void clear() const {
        for (int64_t d = 0; d < padded; d += 16) {
            store(out + d, zero());
        }
        highest() = -__builtin_inff();
        sum() = 0;
    }

    void copy(const State& other) const {
        for (int64_t d = 0; d < padded + 16; d += 16) {
            store(out + d, load(other.out + d));
        }
    }
};

/* Rows one after the other. */
struct States {
    float* rows;
    int64_t padded;

    State operator[](int64_t row) const { return {rows + row * (padded + 16), padded}; }
};

/* Floats of a row. */
TACHO_INLINE int64_t state_floats(int64_t head_dim) {
    return (head_dim + 15) / 16 * 16 + 16;
}

/* 2^(score - highest), also where all scores are -infinity. */
TACHO_INLINE float origin_of(float highest) {
    return highest == -__builtin_inff() ? 0 : highest;
}

/* Scale and cap of the raw scores, after which they still need the factor that is returned. */
TACHO_INLINE float cap_scores(const tacho_attention_params& p, int64_t first, int64_t last, float* scores) {
    if (p.softcap == 0 && p.scale > 0) {
        return p.scale * kLog2E;
    }
    for (int64_t at = first; at < last; at += kBlockTokens) {
        Vec s = mul(load(scores + at), broadcast(p.scale));
        if (p.softcap > 0) {
            s = mul(tanh(div(s, broadcast(p.softcap))), broadcast(p.softcap));
        }
        store(scores + at, s);
    }
    return kLog2E;
}

/* Scores of the keys of a chunk, and what turns them into weights. */
struct Scores {
    float* of;
    Keys keys;
    int64_t first; /* of the blocks that hold the keys */
    int64_t last;
    float unit;    /* log2 e and the scale, if it is not in them already */
    float highest; /* times the unit */

    /* Scores of other keys in the same blocks become -infinity. */
    TACHO_INLINE void find_highest(const tacho_attention_params& p, Keys of_chunk, float* scores) {
        of = scores;
        keys = of_chunk;
        first = keys.first / kBlockTokens * kBlockTokens;
        last = (keys.last + kBlockTokens - 1) / kBlockTokens * kBlockTokens;
        unit = cap_scores(p, first, last, scores);
        hide_others(first);
        hide_others(last - kBlockTokens);
        Vec top = broadcast(-__builtin_inff());
        for (int64_t at = first; at < last; at += kBlockTokens) {
            top = max(top, load(of + at));
        }
        highest = max_lane(top) * unit;
    }

    /* Turns them into weights, 2^(score - highest), and brings the row's state to the new highest score. */
    TACHO_INLINE void soften(const State& state) const {
        const float old = state.highest();
        const float origin = origin_of(highest > old ? highest : old);
        Vec sum = zero();
        for (int64_t at = first; at < last; at += kBlockTokens) {
            const Vec e = exp2(fma(load(of + at), broadcast(unit), broadcast(-origin)));
            sum = add(sum, e);
            store(of + at, e);
        }
        if (highest > old) {
            const Vec factor = exp2(broadcast(old - origin));
            for (int64_t d = 0; d < state.padded; d += 16) {
                store(state.out + d, mul(load(state.out + d), factor));
            }
            state.sum() *= first_lane(factor);
            state.highest() = highest;
        }
        state.sum() += sum_lanes(sum);
    }

private:
    TACHO_INLINE void hide_others(int64_t at) const {
        store(of + at, keep_lanes(load(of + at), keys.first - at, keys.last - at, -__builtin_inff()));
    }
};

/* state += other. */
TACHO_INLINE void merge(const State& state, const State& other) {
    const float highest = other.highest() > state.highest() ? other.highest() : state.highest();
    const float origin = origin_of(highest);
    const Vec mine = exp2(broadcast(state.highest() - origin));
    const Vec its = exp2(broadcast(other.highest() - origin));
    for (int64_t d = 0; d < state.padded; d += 16) {
        store(state.out + d, fma(load(other.out + d), its, mul(load(state.out + d), mine)));
    }
    state.sum() = state.sum() * first_lane(mine) + other.sum() * first_lane(its);
    state.highest() = highest;
}

/* out [head_dim] = the row divided by its sum, the sink's share included. `sink` may be NULL. */
TACHO_INLINE void finish(const State& state, const float* sink, int64_t head_dim, float* out) {
    Vec factor = broadcast(1.0f);
    float sum = state.sum();
    if (sink != nullptr) {
        const float score = *sink * kLog2E;
        const float highest = score > state.highest() ? score : state.highest();
        const float origin = origin_of(highest);
        factor = exp2(broadcast(state.highest() - origin));
        sum = sum * first_lane(factor) + first_lane(exp2(broadcast(score - origin)));
    }
    factor = div(factor, broadcast(sum));
    for (int64_t d = 0; d < head_dim; d += 16) {
        store_partial(out + d, mul(load(state.out + d), factor), smaller(16, head_dim - d));
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
