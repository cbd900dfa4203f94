/* Sixteen floats in two registers of AVX2, FMA and F16C. The functions are described in avx512/simd.h. */
#ifndef TACHO_CPU_SIMD_H
#define TACHO_CPU_SIMD_H

#include <immintrin.h>
#include <stdint.h>

#include "cpu/kernels/elements.h"

#define TACHO_ISA_NAMESPACE avx2
#define TACHO_ISA_NUMBER TACHO_ISA_AVX2
#define TACHO_ISA_WORD "avx2"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

struct Vec {
    __m256 low;  /* lanes 0..7 */
    __m256 high; /* lanes 8..15 */
};

constexpr int kFloatRows = 6;
constexpr bool kConvertsRuns = false;
constexpr bool kFollowsStreams = false;
constexpr int64_t kWeightsAhead = 0;
constexpr int tile_panels(int rows) {
    return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}

TACHO_INLINE float to_float(float value) {
    return value;
}
TACHO_INLINE float to_float(Half value) {
    return _cvtsh_ss(value.bits);
}
TACHO_INLINE float to_float(BFloat value) {
    return _mm_cvtss_f32(
        _mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int32_t>(static_cast<uint32_t>(value.bits) << 16))));
}

TACHO_INLINE Vec broadcast(float value) {
    return {_mm256_set1_ps(value), _mm256_set1_ps(value)};
}
TACHO_INLINE Vec zero() {
    return {_mm256_setzero_ps(), _mm256_setzero_ps()};
}

TACHO_INLINE __m128i raw_load(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
TACHO_INLINE __m256 widen(const Half*, __m128i raw) {
    return _mm256_cvtph_ps(raw);
}
TACHO_INLINE __m256 widen(const BFloat*, __m128i raw) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
}
TACHO_INLINE __m128i narrow(const Half*, __m256 v) {
    return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TACHO_INLINE __m128i narrow(const BFloat*, __m256 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), quiet, nan);
    const __m256i packed = _mm256_packus_epi32(chosen, chosen);
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
}

TACHO_INLINE Vec load(const float* from) {
    return {_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
template <class Element>
TACHO_INLINE Vec load(const Element* from) {
    return {widen(from, raw_load(from)), widen(from, raw_load(from + 8))};
}
template <class Element>
TACHO_INLINE Vec load_partial(const Element* from, int64_t count) {
    Element copy[16] = {};
    for (int64_t i = 0; i < count; ++i) {
        copy[i] = from[i];
    }
    return load(copy);
}

TACHO_INLINE Vec widen_int8(__m128i codes) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8)))};
}
TACHO_INLINE Vec widen_nibbles(__m128i bytes) {
    const __m128i codes = _mm_and_si128(bytes, _mm_set1_epi8(15));
    return widen_int8(_mm_sub_epi8(codes, _mm_set1_epi8(8)));
}
TACHO_INLINE Vec load_int8(const int8_t* from) {
    return widen_int8(raw_load(from));
}
TACHO_INLINE Vec load_low_nibbles(const uint8_t* from) {
    return widen_nibbles(raw_load(from));
}
TACHO_INLINE Vec load_high_nibbles(const uint8_t* from) {
    return widen_nibbles(_mm_srli_epi16(raw_load(from), 4));
}

TACHO_INLINE void store(float* to, const Vec& v) {
    _mm256_storeu_ps(to, v.low);
    _mm256_storeu_ps(to + 8, v.high);
}
template <class Element>
TACHO_INLINE void store(Element* to, const Vec& v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), narrow(to, v.low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8), narrow(to, v.high));
}
template <class Element>
TACHO_INLINE void store_partial(Element* to, const Vec& v, int64_t count) {
    Element copy[16];
    store(copy, v);
    for (int64_t i = 0; i < count; ++i) {
        to[i] = copy[i];
    }
}

TACHO_INLINE Vec add(const Vec& a, const Vec& b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
TACHO_INLINE Vec sub(const Vec& a, const Vec& b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
TACHO_INLINE Vec mul(const Vec& a, const Vec& b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
TACHO_INLINE Vec div(const Vec& a, const Vec& b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
TACHO_INLINE Vec fma(const Vec& a, const Vec& b, const Vec& c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
TACHO_INLINE void add_product(Vec& sum, const Vec& a, const Vec& b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum.low) : "x"(a.low), "x"(b.low));
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum.high) : "x"(a.high), "x"(b.high));
}
TACHO_INLINE Vec max(const Vec& a, const Vec& b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
TACHO_INLINE Vec min(const Vec& a, const Vec& b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}

TACHO_INLINE __m256 round_half(__m256 v) {
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TACHO_INLINE Vec round(const Vec& a) {
    return {round_half(a.low), round_half(a.high)};
}

/* In two factors, as 2^n itself may be out of range where a * 2^n is not. */
TACHO_INLINE __m256 scale_half(__m256 a, __m256 n) {
    const __m256i exponent = _mm256_cvtps_epi32(n);
    const __m256i first = _mm256_srai_epi32(exponent, 1);
    const __m256i second = _mm256_sub_epi32(exponent, first);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256 low = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(first, bias), 23));
    const __m256 high = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(second, bias), 23));
    return _mm256_mul_ps(_mm256_mul_ps(a, low), high);
}
TACHO_INLINE Vec scale_pow2(const Vec& a, const Vec& n) {
    return {scale_half(a.low, n.low), scale_half(a.high, n.high)};
}

TACHO_INLINE Vec select_less(const Vec& a, const Vec& b, const Vec& yes, const Vec& no) {
    return {_mm256_blendv_ps(no.low, yes.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
            _mm256_blendv_ps(no.high, yes.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
}
TACHO_INLINE __m256 keep_half(__m256 v, __m256i lane, int64_t first, int64_t last, float other) {
    const __m256i above = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(static_cast<int32_t>(first) - 1));
    const __m256i below = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(last)), lane);
    return _mm256_blendv_ps(_mm256_set1_ps(other), v, _mm256_castsi256_ps(_mm256_and_si256(above, below)));
}
TACHO_INLINE Vec keep_lanes(const Vec& v, int64_t first, int64_t last, float other) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {keep_half(v.low, lane, first, last, other), keep_half(v.high, lane, first - 8, last - 8, other)};
}

TACHO_INLINE float sum_lanes(const Vec& v) {
    const __m256 eight = _mm256_add_ps(v.low, v.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
TACHO_INLINE float max_lane(const Vec& v) {
    const __m256 eight = _mm256_max_ps(v.low, v.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
TACHO_INLINE float first_lane(const Vec& v) {
    return _mm256_cvtss_f32(v.low);
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
