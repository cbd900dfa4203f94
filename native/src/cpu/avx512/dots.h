/*
 * Dot products of integer codes, 16 outputs side by side in one register of 64 bytes. The same functions as in
 * scalar/dots.h and avx2/dots.h:
 *
 *   Ints                       16 int32, or what the sums of unsigned products are kept in until they are finished
 *   load_codes                 64 bytes: of each output four k
 *   low_nibbles, high_nibbles  of each byte
 *   with_high_bits<s>          adds bits s, s + 1 of each byte of `high` to the nibbles, as bits 4 and 5
 *   dot_unsigned               sum += codes 0..255 times four signed codes of x, the same for all outputs
 *   finish_unsigned            the sums as int32
 *   load_wide, dot_wide        the same for signed codes of two k and two int16 of x; only with kWideProducts
 *   first_dot_wide             dot_wide with a sum that starts here, at 0
 *   code_sums                  of a block of 32 signed codes: those with k % 4 < 2 and the others, of each half
 *   store_ints                 writes 64 bytes, aligned
 *
 * For pairs of bfloats (bfloats.h):
 *
 *   look_up                    the bytes of a table of 16 for 64 nibbles
 *   interleave_first, .._last  of every 16 bytes the first or last eight, each followed by its byte of `upper`
 *   first_floats, ..second_..  of 16 pairs
 *   dot_bfloats                sum += products of 16 pairs with one of x; only with TACHO_BFLOAT_PRODUCTS
 *
 * With TACHO_UNPACKS_WEIGHTS or TACHO_TILE_PRODUCTS (products of whole registers of tiles, tiles.h):
 *
 *   code_bytes<z>              unsigned codes with the offset z as unpacked products take them: here signed, less z; with
 *                              AVX2 as they are
 *
 * With TACHO_UNPACKS_WEIGHTS also what unpacked.h needs:
 *
 *   first_dot_unsigned         the same as dot_unsigned with a sum that starts here, at 0 or at a pair for all outputs
 *   add_ints                   int32
 *   subtract_products          sum -= dot_wide of two codes of weights
 *   dot_crossed                sum += (first + x[2..3]) * (second + x[0..1]), wide codes
 *
 * Without VNNI the sums of unsigned products are pairs of int16, one for k % 4 < 2, one for the others (kPairSums). They
 * hold 32 products with a code up to 15, or 16 with a code up to 63; what was added at the start may wrap them on the
 * way, not at the end. Signed codes are multiplied as int16 there (kWideProducts).
 */
#ifndef TACHO_CPU_DOTS_H
#define TACHO_CPU_DOTS_H

#include "simd.h"

#define TACHO_UNPACKS_WEIGHTS 0
#if defined(__AMX_INT8__)
#define TACHO_TILE_PRODUCTS 1
#else
#define TACHO_TILE_PRODUCTS 0
#endif

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

using Ints = __m512i;

constexpr bool kSumsInMemory = false;
#if defined(__AVX512VNNI__)
constexpr bool kWideProducts = false;
#else
constexpr bool kWideProducts = true;
#endif
constexpr bool kPairSums = kWideProducts;

/* Panels and rows that a tile of integer products takes at once, kWideRows where they are wide, and the rows that it
 * can take of one panel. */
constexpr int kIntPanels = 2;
constexpr int kIntRows = 6;
constexpr int kWideRows = 6;
constexpr int kFewIntRows = 8;
/* Rows and panels for which BF16 weights are unpacked at once, and how many rows are so many that weights are unpacked
 * once for all of them before. */
constexpr int kBFloatRows = 8;
#if defined(__AVX512BF16__)
#define TACHO_BFLOAT_PRODUCTS 1
constexpr int kManyBFloatRows = 192;
#else
#define TACHO_BFLOAT_PRODUCTS 0
constexpr int kManyBFloatRows = 96;
#endif
constexpr int bfloat_panels(int rows) {
    return rows == 1 ? 4 : 2;
}

TACHO_INLINE Ints broadcast_int(const void* from) {
    int32_t value;
    __builtin_memcpy(&value, from, sizeof value);
    return _mm512_set1_epi32(value);
}
TACHO_INLINE Ints zero_ints() {
    return _mm512_setzero_si512();
}
TACHO_INLINE Vec to_floats(Ints a) {
    return _mm512_cvtepi32_ps(a);
}
TACHO_INLINE Vec uint8_floats(Bytes16 bytes) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(reinterpret_cast<__m128i>(bytes)));
}

TACHO_INLINE Ints load_codes(const uint8_t* from) {
    return _mm512_loadu_si512(from);
}
TACHO_INLINE Ints low_nibbles(Ints bytes) {
    return _mm512_and_si512(bytes, _mm512_set1_epi8(15));
}
TACHO_INLINE Ints high_nibbles(Ints bytes) {
    return low_nibbles(_mm512_srli_epi16(bytes, 4));
}
template <int shift>
TACHO_INLINE Ints with_high_bits(Ints nibbles, Ints high) {
    constexpr int left = 4 - shift;
    const Ints moved = left >= 0 ? _mm512_slli_epi16(high, left >= 0 ? left : 0)
                                 : _mm512_srli_epi16(high, left < 0 ? -left : 0);
    return _mm512_or_si512(nibbles, _mm512_and_si512(moved, _mm512_set1_epi8(0x30)));
}

#if defined(__AVX512VNNI__)
/* Written out: GCC 12 copies and spills the sums of the intrinsic. */
TACHO_INLINE void dot_unsigned(Ints& sum, const Ints& codes, const void* x) {
    const Ints four = broadcast_int(x);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(four));
}
TACHO_INLINE Ints finish_unsigned(Ints sum) {
    return sum;
}
#else
TACHO_INLINE void dot_unsigned(Ints& sum, const Ints& codes, const void* x) {
    sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(codes, broadcast_int(x)));
}
TACHO_INLINE Ints finish_unsigned(Ints sum) {
    return _mm512_madd_epi16(sum, _mm512_set1_epi16(1));
}
#endif

TACHO_INLINE Ints load_wide(const uint8_t* from) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
TACHO_INLINE void dot_wide(Ints& sum, const Ints& codes, const void* x) {
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(codes, broadcast_int(x)));
}

TACHO_INLINE void first_dot_wide(Ints& sum, const Ints& codes, const void* x) {
    sum = _mm512_madd_epi16(codes, broadcast_int(x));
}

/* Sixteen whole numbers of [-128, 127] as bytes. */
TACHO_INLINE void store_codes(int8_t* to, Vec v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
}

TACHO_INLINE void code_sums(const int8_t* codes, int32_t (&first)[2], int32_t (&second)[2]) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
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

TACHO_INLINE void store_ints(uint8_t* to, const Ints& v) {
    _mm512_store_si512(to, v);
}

template <int offset>
TACHO_INLINE Ints code_bytes(Ints codes) {
    return _mm512_sub_epi8(codes, _mm512_set1_epi8(static_cast<char>(offset)));
}

using ByteTable = __m512i;
TACHO_INLINE ByteTable load_table(const uint8_t* sixteen) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen)));
}
TACHO_INLINE Ints look_up(const ByteTable& table, const Ints& nibbles) {
    return _mm512_shuffle_epi8(table, nibbles);
}
TACHO_INLINE Ints interleave_first(const Ints& lower, const Ints& upper) {
    return _mm512_unpacklo_epi8(lower, upper);
}
TACHO_INLINE Ints interleave_last(const Ints& lower, const Ints& upper) {
    return _mm512_unpackhi_epi8(lower, upper);
}
TACHO_INLINE Vec first_floats(const Ints& pairs) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
TACHO_INLINE Vec second_floats(const Ints& pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-65536)));
}

#if TACHO_BFLOAT_PRODUCTS
TACHO_INLINE void dot_bfloats(Vec& sum, const Ints& pairs, const void* x) {
    const Ints two = broadcast_int(x);
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(pairs), "v"(two));
}
#endif

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
