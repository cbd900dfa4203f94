/*
 * Sixteen floats in one register of AVX-512 F, BW, VL, DQ. The same functions as in scalar/simd.h, lane by lane the
 * same meaning:
 *
 *   load, store           sixteen elements of float, Half or BFloat; narrowing rounds to nearest even
 *   load_partial, ...     the first `count`; memory past them is not touched, missing lanes are 0
 *   load_int8, ..nibbles  codes of Q8_0 and Q4_0, the latter less 8
 *   fma                   a * b + c
 *   add_product           sum += a * b, as one fma
 *   max, min              the second operand if one is NaN
 *   scale_pow2            a * 2^n for a whole n; goes to infinity, denormals and 0 as a float does
 *   keep_lanes            v in lanes [first, last), `other` elsewhere
 *   sum_lanes, max_lane   over halves, always in the same order
 *   kFloatRows            rows of x that a tile takes that has no sums but those of floats. With AVX-512 eight, which are
 *                         what a cache of eight ways holds of rows that lie a multiple of 4 KiB apart
 *   tile_panels           panels of 16 columns that a tile of so many rows takes at once, so that its sums, weights and
 *                         one x fit the registers and few rows still have independent chains
 *   kConvertsRuns         whether widening weights of two bytes costs products of floats, so that with many rows it is
 *                         done once for all tiles (matmul_many.h). On Zen 4 it does in registers of 64 bytes, not in
 *                         those of 32
 *   kFollowsStreams       whether the processor fetches what is read from end to end by itself, as fast as memory gives:
 *                         then a matmul of one row does without requests of its own. On Zen 4 it does (measured with
 *                         bench/weight_bandwidth), on Zen 3, for which AVX2 stands, requests win
 *   kWeightsAhead           how many bytes ahead a matmul asks for weights of integer codes, of any type and number of
 *                           rows; 0 where each has its own. With AMX, which stands for Intel's processors since Sapphire
 *                           Rapids: a row of Q4_0 27 in place of 19 GB/s, of Q8_0 33 in place of 27
 */
#ifndef TACHO_CPU_SIMD_H
#define TACHO_CPU_SIMD_H

#include <immintrin.h>
#include <stdint.h>

#include "cpu/kernels/elements.h"

#if defined(__AMX_INT8__)
#define TACHO_ISA_NAMESPACE amx
#define TACHO_ISA_NUMBER TACHO_ISA_AMX
#define TACHO_ISA_WORD "amx"
#elif defined(__AVX512BF16__)
#define TACHO_ISA_NAMESPACE avx512_bf16
#define TACHO_ISA_NUMBER TACHO_ISA_AVX512_BF16
#define TACHO_ISA_WORD "avx512_bf16"
#elif defined(__AVX512VNNI__)
#define TACHO_ISA_NAMESPACE avx512_vnni
#define TACHO_ISA_NUMBER TACHO_ISA_AVX512_VNNI
#define TACHO_ISA_WORD "avx512_vnni"
#else
#define TACHO_ISA_NAMESPACE avx512
#define TACHO_ISA_NUMBER TACHO_ISA_AVX512
#define TACHO_ISA_WORD "avx512"
#endif

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

using Vec = __m512;

constexpr int kFloatRows = 8;
constexpr bool kConvertsRuns = true;
#if defined(__AMX_INT8__)
constexpr bool kFollowsStreams = false;
constexpr int64_t kWeightsAhead = 4096;
#else
constexpr bool kFollowsStreams = true;
constexpr int64_t kWeightsAhead = 0;
#endif
constexpr int tile_panels(int rows) {
    return rows <= 3 ? 4 : 2;
}

/* count in [0, 16] */
TACHO_INLINE __mmask16 lanes_below(int64_t count) {
    return static_cast<__mmask16>((1u << count) - 1);
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
    return _mm512_set1_ps(value);
}
TACHO_INLINE Vec zero() {
    return _mm512_setzero_ps();
}

TACHO_INLINE __m256i raw_load(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
TACHO_INLINE Vec widen(const Half*, __m256i raw) {
    return _mm512_cvtph_ps(raw);
}
TACHO_INLINE Vec widen(const BFloat*, __m256i raw) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
}
TACHO_INLINE __m256i narrow(const Half*, Vec v) {
    return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TACHO_INLINE __m256i narrow(const BFloat*, Vec v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32(rounded, 16), nan, quiet));
}

TACHO_INLINE Vec load(const float* from) {
    return _mm512_loadu_ps(from);
}
template <class Element>
TACHO_INLINE Vec load(const Element* from) {
    return widen(from, raw_load(from));
}
TACHO_INLINE Vec load_partial(const float* from, int64_t count) {
    return _mm512_maskz_loadu_ps(lanes_below(count), from);
}
template <class Element>
TACHO_INLINE Vec load_partial(const Element* from, int64_t count) {
    return widen(from, _mm256_maskz_loadu_epi16(lanes_below(count), from));
}

TACHO_INLINE __m128i raw_bytes(const void* from) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
}
TACHO_INLINE Vec widen_int8(__m128i codes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(codes));
}
TACHO_INLINE Vec widen_nibbles(__m128i bytes) {
    const __m128i codes = _mm_and_si128(bytes, _mm_set1_epi8(15));
    return widen_int8(_mm_sub_epi8(codes, _mm_set1_epi8(8)));
}
TACHO_INLINE Vec load_int8(const int8_t* from) {
    return widen_int8(raw_bytes(from));
}
TACHO_INLINE Vec load_low_nibbles(const uint8_t* from) {
    return widen_nibbles(raw_bytes(from));
}
TACHO_INLINE Vec load_high_nibbles(const uint8_t* from) {
    return widen_nibbles(_mm_srli_epi16(raw_bytes(from), 4));
}

TACHO_INLINE void store(float* to, Vec v) {
    _mm512_storeu_ps(to, v);
}
template <class Element>
TACHO_INLINE void store(Element* to, Vec v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow(to, v));
}
TACHO_INLINE void store_partial(float* to, Vec v, int64_t count) {
    _mm512_mask_storeu_ps(to, lanes_below(count), v);
}
template <class Element>
TACHO_INLINE void store_partial(Element* to, Vec v, int64_t count) {
    _mm256_mask_storeu_epi16(to, lanes_below(count), narrow(to, v));
}

TACHO_INLINE Vec add(Vec a, Vec b) {
    return _mm512_add_ps(a, b);
}
TACHO_INLINE Vec sub(Vec a, Vec b) {
    return _mm512_sub_ps(a, b);
}
TACHO_INLINE Vec mul(Vec a, Vec b) {
    return _mm512_mul_ps(a, b);
}
TACHO_INLINE Vec div(Vec a, Vec b) {
    return _mm512_div_ps(a, b);
}
TACHO_INLINE Vec fma(Vec a, Vec b, Vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
/* Written out: GCC 12 spills sums of many intrinsics, or reads the number to broadcast once for each of them. */
TACHO_INLINE void add_product(Vec& sum, Vec a, Vec b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}
TACHO_INLINE Vec max(Vec a, Vec b) {
    return _mm512_max_ps(a, b);
}
TACHO_INLINE Vec min(Vec a, Vec b) {
    return _mm512_min_ps(a, b);
}
TACHO_INLINE Vec round(Vec a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
TACHO_INLINE Vec scale_pow2(Vec a, Vec n) {
    return _mm512_scalef_ps(a, n);
}

TACHO_INLINE Vec select_less(Vec a, Vec b, Vec yes, Vec no) {
    return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes);
}
TACHO_INLINE Vec keep_lanes(Vec v, int64_t first, int64_t last, float other) {
    const int64_t from = first > 0 ? first : 0;
    const int64_t to = last < 16 ? (last > 0 ? last : 0) : 16;
    const auto kept = static_cast<__mmask16>(lanes_below(to) & ~lanes_below(from < 16 ? from : 16));
    return _mm512_mask_mov_ps(broadcast(other), kept, v);
}

TACHO_INLINE __m256 lower(Vec v) {
    return _mm512_castps512_ps256(v);
}
TACHO_INLINE __m256 upper(Vec v) {
    return _mm512_extractf32x8_ps(v, 1);
}
TACHO_INLINE float sum_lanes(Vec v) {
    const __m256 eight = _mm256_add_ps(lower(v), upper(v));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
TACHO_INLINE float max_lane(Vec v) {
    const __m256 eight = _mm256_max_ps(lower(v), upper(v));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
TACHO_INLINE float first_lane(Vec v) {
    return _mm512_cvtss_f32(v);
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
