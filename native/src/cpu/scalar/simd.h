/*
 * Sixteen floats in plain C++: for any CPU, and the measure of the other instruction sets. Same functions as the simd.h
 * beside it; see there for what each one does.
 */
#ifndef TACHO_CPU_SIMD_H
#define TACHO_CPU_SIMD_H

#include <stdint.h>

#include "cpu/kernels/elements.h"

#define TACHO_ISA_NAMESPACE scalar
#define TACHO_ISA_NUMBER TACHO_ISA_SCALAR
#define TACHO_ISA_WORD "scalar"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

struct Vec {
    float lane[16];
};

constexpr int kFloatRows = 4;
constexpr bool kConvertsRuns = false;
constexpr bool kFollowsStreams = false;
constexpr int64_t kWeightsAhead = 0;
constexpr int tile_panels(int) {
    return 1;
}

/* Applies an expression of i to every lane. */
#define TACHO_EACH_LANE(expression)  \
    Vec result;                      \
    for (int i = 0; i < 16; ++i) {   \
        result.lane[i] = expression; \
    }                                \
    return result

TACHO_INLINE uint32_t bits_of(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

TACHO_INLINE float float_of(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

TACHO_INLINE float to_float(float value) {
    return value;
}
TACHO_INLINE float to_float(BFloat value) {
    return float_of(static_cast<uint32_t>(value.bits) << 16);
}
TACHO_INLINE float to_float(Half value) {
    const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
    const uint32_t magnitude = value.bits & 0x7fff;
    if (magnitude >= 0x7c00) {
        const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
        return float_of(sign | 0x7f800000 | quiet | ((magnitude & 0x3ff) << 13));
    }
    /* The exponent is 112 too small when read as a float's; the product is exact, denormals included. */
    return float_of(sign | bits_of(float_of(magnitude << 13) * 0x1p112f));
}

TACHO_INLINE void from_float(float value, float* to) {
    *to = value;
}
TACHO_INLINE void from_float(float value, BFloat* to) {
    const uint32_t bits = bits_of(value);
    const bool nan = (bits & 0x7fffffff) > 0x7f800000;
    to->bits = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40 : (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
TACHO_INLINE void from_float(float value, Half* to) {
    const uint32_t bits = bits_of(value);
    const uint32_t sign = (bits >> 16) & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    uint32_t half;
    if (magnitude > 0x7f800000) {
        half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    } else if (magnitude >= 0x477ff000) {
        half = 0x7c00; /* rounds to 2^16 or more */
    } else if (magnitude < 0x38800000) {
        half = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f); /* the addition rounds to steps of 2^-24 */
    } else {
        half = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    }
    to->bits = static_cast<uint16_t>(sign | half);
}

TACHO_INLINE Vec broadcast(float value) {
    TACHO_EACH_LANE((static_cast<void>(i), value));
}
TACHO_INLINE Vec zero() {
    return broadcast(0);
}

template <class Element>
TACHO_INLINE Vec load(const Element* from) {
    TACHO_EACH_LANE(to_float(from[i]));
}
template <class Element>
TACHO_INLINE Vec load_partial(const Element* from, int64_t count) {
    TACHO_EACH_LANE(i < count ? to_float(from[i]) : 0);
}
TACHO_INLINE Vec load_int8(const int8_t* from) {
    TACHO_EACH_LANE(static_cast<float>(from[i]));
}
TACHO_INLINE Vec load_low_nibbles(const uint8_t* from) {
    TACHO_EACH_LANE(static_cast<float>((from[i] & 15) - 8));
}
TACHO_INLINE Vec load_high_nibbles(const uint8_t* from) {
    TACHO_EACH_LANE(static_cast<float>((from[i] >> 4) - 8));
}

template <class Element>
TACHO_INLINE void store_partial(Element* to, const Vec& v, int64_t count) {
    for (int i = 0; i < count; ++i) {
        from_float(v.lane[i], to + i);
    }
}
template <class Element>
TACHO_INLINE void store(Element* to, const Vec& v) {
    store_partial(to, v, 16);
}

TACHO_INLINE Vec add(const Vec& a, const Vec& b) {
    TACHO_EACH_LANE(a.lane[i] + b.lane[i]);
}
TACHO_INLINE Vec sub(const Vec& a, const Vec& b) {
    TACHO_EACH_LANE(a.lane[i] - b.lane[i]);
}
TACHO_INLINE Vec mul(const Vec& a, const Vec& b) {
    TACHO_EACH_LANE(a.lane[i] * b.lane[i]);
}
TACHO_INLINE Vec div(const Vec& a, const Vec& b) {
    TACHO_EACH_LANE(a.lane[i] / b.lane[i]);
}
TACHO_INLINE Vec fma(const Vec& a, const Vec& b, const Vec& c) {
    TACHO_EACH_LANE(a.lane[i] * b.lane[i] + c.lane[i]);
}
TACHO_INLINE void add_product(Vec& sum, const Vec& a, const Vec& b) {
    sum = fma(a, b, sum);
}
TACHO_INLINE Vec max(const Vec& a, const Vec& b) {
    TACHO_EACH_LANE(a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]);
}
TACHO_INLINE Vec min(const Vec& a, const Vec& b) {
    TACHO_EACH_LANE(a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]);
}

TACHO_INLINE Vec round(const Vec& a) {
    constexpr float kShift = 0x1.8p23f;
    TACHO_EACH_LANE((a.lane[i] + kShift) - kShift);
}

TACHO_INLINE Vec scale_pow2(const Vec& a, const Vec& n) {
    constexpr float kShift = 0x1.8p23f;
    Vec result;
    for (int i = 0; i < 16; ++i) {
        const auto exponent = static_cast<int32_t>(bits_of(n.lane[i] + kShift) - bits_of(kShift));
        const int32_t first = exponent >> 1;
        const float low = float_of((static_cast<uint32_t>(first) + 127) << 23);
        const float high = float_of((static_cast<uint32_t>(exponent) - static_cast<uint32_t>(first) + 127) << 23);
        result.lane[i] = a.lane[i] * low * high;
    }
    return result;
}

TACHO_INLINE Vec select_less(const Vec& a, const Vec& b, const Vec& yes, const Vec& no) {
    TACHO_EACH_LANE(a.lane[i] < b.lane[i] ? yes.lane[i] : no.lane[i]);
}
TACHO_INLINE Vec keep_lanes(const Vec& v, int64_t first, int64_t last, float other) {
    TACHO_EACH_LANE(i >= first && i < last ? v.lane[i] : other);
}

TACHO_INLINE float sum_lanes(Vec v) {
    for (int width = 8; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) {
            v.lane[i] += v.lane[i + width];
        }
    }
    return v.lane[0];
}
TACHO_INLINE float max_lane(Vec v) {
    for (int width = 8; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) {
            v.lane[i] = v.lane[i] > v.lane[i + width] ? v.lane[i] : v.lane[i + width];
        }
    }
    return v.lane[0];
}
TACHO_INLINE float first_lane(const Vec& v) {
    return v.lane[0];
}

#undef TACHO_EACH_LANE

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
