/* Dot products of integer codes, 16 outputs side by side in two registers. The functions are described in
 * avx512/dots.h. */
#ifndef TACHO_CPU_DOTS_H
#define TACHO_CPU_DOTS_H

#include "simd.h"

#define TACHO_BFLOAT_PRODUCTS 0
#define TACHO_UNPACKS_WEIGHTS 1
#define TACHO_TILE_PRODUCTS 0

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

struct Ints {
    __m256i low;  /* outputs 0..7 */
    __m256i high; /* outputs 8..15 */
};

/* Sixteen registers do not hold integer and float sums of six rows: the float sums stay in the L1 cache. */
constexpr bool kSumsInMemory = true;
constexpr bool kWideProducts = true;
constexpr bool kPairSums = true;
constexpr int kIntPanels = 1;
constexpr int kIntRows = 4; /* with 6 the processor's window holds less than a block */
constexpr int kWideRows = 6;
constexpr int kFewIntRows = 4;
constexpr int kBFloatRows = 4;
constexpr int kManyBFloatRows = 12;
constexpr int bfloat_panels(int rows) {
    return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}

TACHO_INLINE __m256i load_half(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
TACHO_INLINE Ints broadcast_int(const void* from) {
    int32_t value;
    __builtin_memcpy(&value, from, sizeof value);
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
}
TACHO_INLINE Ints zero_ints() {
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
}
TACHO_INLINE Vec to_floats(Ints a) {
    return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)};
}
TACHO_INLINE Vec uint8_floats(Bytes16 sixteen) {
    const auto bytes = reinterpret_cast<__m128i>(sixteen);
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}

TACHO_INLINE Ints load_codes(const uint8_t* from) {
    return {load_half(from), load_half(from + 32)};
}
TACHO_INLINE Ints low_nibbles(Ints bytes) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(bytes.low, mask), _mm256_and_si256(bytes.high, mask)};
}
TACHO_INLINE Ints high_nibbles(Ints bytes) {
    return low_nibbles({_mm256_srli_epi16(bytes.low, 4), _mm256_srli_epi16(bytes.high, 4)});
}
template <int shift>
TACHO_INLINE __m256i high_bits(__m256i high) {
    constexpr int left = 4 - shift;
    const __m256i moved = left >= 0 ? _mm256_slli_epi16(high, left >= 0 ? left : 0)
                                    : _mm256_srli_epi16(high, left < 0 ? -left : 0);
    return _mm256_and_si256(moved, _mm256_set1_epi8(0x30));
}
template <int shift>
TACHO_INLINE Ints with_high_bits(Ints nibbles, Ints high) {
    return {_mm256_or_si256(nibbles.low, high_bits<shift>(high.low)),
            _mm256_or_si256(nibbles.high, high_bits<shift>(high.high))};
}

/* Written out: GCC 12 reassociates the sums of the intrinsics, moves them to the stack and loses half the speed. */
TACHO_INLINE void dot_unsigned(Ints& sum, const Ints& codes, const void* x) {
    __asm__ volatile(
        "vpbroadcastd %4, %%ymm14\n\t"
        "vpmaddubsw %%ymm14, %2, %%ymm15\n\t"
        "vpaddw %%ymm15, %0, %0\n\t"
        "vpmaddubsw %%ymm14, %3, %%ymm14\n\t"
        "vpaddw %%ymm14, %1, %1"
        : "+x"(sum.low), "+x"(sum.high)
        : "x"(codes.low), "x"(codes.high), "m"(*static_cast<const int32_t*>(x))
        : "xmm14", "xmm15");
}
TACHO_INLINE Ints finish_unsigned(Ints sum) {
    const __m256i one = _mm256_set1_epi16(1);
    return {_mm256_madd_epi16(sum.low, one), _mm256_madd_epi16(sum.high, one)};
}

TACHO_INLINE Ints load_wide(const uint8_t* from) {
    const auto* half = reinterpret_cast<const __m128i*>(from);
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(half)), _mm256_cvtepi8_epi16(_mm_loadu_si128(half + 1))};
}
TACHO_INLINE void dot_wide(Ints& sum, const Ints& codes, const void* x) {
    __asm__(
        "vpbroadcastd %4, %%ymm14\n\t"
        "vpmaddwd %%ymm14, %2, %%ymm15\n\t"
        "vpaddd %%ymm15, %0, %0\n\t"
        "vpmaddwd %%ymm14, %3, %%ymm14\n\t"
        "vpaddd %%ymm14, %1, %1"
        : "+x"(sum.low), "+x"(sum.high)
        : "x"(codes.low), "x"(codes.high), "m"(*static_cast<const int32_t*>(x))
        : "xmm14", "xmm15");
}

TACHO_INLINE void first_dot_wide(Ints& sum, const Ints& codes, const void* x) {
    __asm__(
        "vpbroadcastd %4, %%ymm14\n\t"
        "vpmaddwd %%ymm14, %2, %0\n\t"
        "vpmaddwd %%ymm14, %3, %1"
        : "=&x"(sum.low), "=&x"(sum.high)
        : "x"(codes.low), "x"(codes.high), "m"(*static_cast<const int32_t*>(x))
        : "xmm14");
}

TACHO_INLINE void store_ints(uint8_t* to, const Ints& v) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to), v.low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(to + 32), v.high);
}

using ByteTable = __m256i;
TACHO_INLINE ByteTable load_table(const uint8_t* sixteen) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen)));
}
TACHO_INLINE Ints look_up(const ByteTable& table, const Ints& nibbles) {
    return {_mm256_shuffle_epi8(table, nibbles.low), _mm256_shuffle_epi8(table, nibbles.high)};
}
TACHO_INLINE Ints interleave_first(const Ints& lower, const Ints& upper) {
    return {_mm256_unpacklo_epi8(lower.low, upper.low), _mm256_unpacklo_epi8(lower.high, upper.high)};
}
TACHO_INLINE Ints interleave_last(const Ints& lower, const Ints& upper) {
    return {_mm256_unpackhi_epi8(lower.low, upper.low), _mm256_unpackhi_epi8(lower.high, upper.high)};
}
TACHO_INLINE Vec first_floats(const Ints& pairs) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(pairs.low, 16)),
            _mm256_castsi256_ps(_mm256_slli_epi32(pairs.high, 16))};
}
TACHO_INLINE Vec second_floats(const Ints& pairs) {
    const __m256i upper = _mm256_set1_epi32(-65536);
    return {_mm256_castsi256_ps(_mm256_and_si256(pairs.low, upper)),
            _mm256_castsi256_ps(_mm256_and_si256(pairs.high, upper))};
}
/* sum = start + codes * x */
template <int>
TACHO_INLINE Ints code_bytes(const Ints& codes) {
    return codes;
}

TACHO_INLINE void first_dot_unsigned(Ints& sum, const Ints& codes, const void* x, const void* start) {
    __asm__ volatile(
        "vpbroadcastd %4, %%ymm14\n\t"
        "vpbroadcastd %5, %%ymm15\n\t"
        "vpmaddubsw %%ymm14, %2, %0\n\t"
        "vpmaddubsw %%ymm14, %3, %1\n\t"
        "vpaddw %%ymm15, %0, %0\n\t"
        "vpaddw %%ymm15, %1, %1"
        : "=&x"(sum.low), "=&x"(sum.high)
        : "x"(codes.low), "x"(codes.high), "m"(*static_cast<const int32_t*>(x)),
          "m"(*static_cast<const int32_t*>(start))
        : "xmm14", "xmm15");
}
TACHO_INLINE void first_dot_unsigned(Ints& sum, const Ints& codes, const void* x) {
    __asm__ volatile(
        "vpbroadcastd %4, %%ymm14\n\t"
        "vpmaddubsw %%ymm14, %2, %0\n\t"
        "vpmaddubsw %%ymm14, %3, %1"
        : "=&x"(sum.low), "=&x"(sum.high)
        : "x"(codes.low), "x"(codes.high), "m"(*static_cast<const int32_t*>(x))
        : "xmm14");
}
TACHO_INLINE Ints add_ints(const Ints& a, const Ints& b) {
    return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
/* Less the products of two pairs of wide codes. */
TACHO_INLINE Ints subtract_products(const Ints& sum, const Ints& a, const Ints& b) {
    return {_mm256_sub_epi32(sum.low, _mm256_madd_epi16(a.low, b.low)),
            _mm256_sub_epi32(sum.high, _mm256_madd_epi16(a.high, b.high))};
}
/* sum += (first + x[2..3]) * (second + x[0..1]) */
TACHO_INLINE void dot_crossed(Ints& sum, const Ints& first, const Ints& second, const int16_t* x) {
    __asm__ volatile(
        "vpbroadcastd %6, %%ymm12\n\t"
        "vpbroadcastd %7, %%ymm13\n\t"
        "vpaddw %%ymm12, %2, %%ymm14\n\t"
        "vpaddw %%ymm13, %4, %%ymm15\n\t"
        "vpaddw %%ymm12, %3, %%ymm12\n\t"
        "vpaddw %%ymm13, %5, %%ymm13\n\t"
        "vpmaddwd %%ymm14, %%ymm15, %%ymm14\n\t"
        "vpmaddwd %%ymm12, %%ymm13, %%ymm12\n\t"
        "vpaddd %%ymm14, %0, %0\n\t"
        "vpaddd %%ymm12, %1, %1"
        : "+x"(sum.low), "+x"(sum.high)
        : "x"(first.low), "x"(first.high), "x"(second.low), "x"(second.high),
          "m"(*reinterpret_cast<const int32_t*>(x + 2)), "m"(*reinterpret_cast<const int32_t*>(x))
        : "xmm12", "xmm13", "xmm14", "xmm15");
}

TACHO_INLINE void store_codes(int8_t* to, Vec v) {
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
}

TACHO_INLINE void code_sums(const int8_t* codes, int32_t (&first)[2], int32_t (&second)[2]) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), load_half(codes));
    const __m256i firsts = _mm256_madd_epi16(pairs, _mm256_set1_epi32(1));
    const __m256i seconds = _mm256_madd_epi16(pairs, _mm256_set1_epi32(1 << 16));
    const __m256i twos = _mm256_hadd_epi32(firsts, seconds);
    const __m256i fours = _mm256_hadd_epi32(twos, twos);
    const __m128i lower_half = _mm256_castsi256_si128(fours);
    const __m128i upper_half = _mm256_extracti128_si256(fours, 1);
    first[0] = _mm_cvtsi128_si32(lower_half);
    second[0] = _mm_extract_epi32(lower_half, 1);
    first[1] = _mm_cvtsi128_si32(upper_half);
    second[1] = _mm_extract_epi32(upper_half, 1);
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
