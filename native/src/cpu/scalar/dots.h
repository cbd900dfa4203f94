/* Dot products of integer codes in plain C++. The functions are described in avx512/dots.h. */
#ifndef TACHO_CPU_DOTS_H
#define TACHO_CPU_DOTS_H

#include "simd.h"

#define TACHO_BFLOAT_PRODUCTS 0
#define TACHO_UNPACKS_WEIGHTS 0
#define TACHO_TILE_PRODUCTS 0

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* 64 bytes: 16 sums, or four codes of each of 16 outputs. */
union Ints {
    int32_t sum[16];
    uint8_t code[16][4];
};

constexpr bool kSumsInMemory = false;
constexpr bool kWideProducts = false;
constexpr bool kPairSums = false;
constexpr int kIntPanels = 1;
constexpr int kIntRows = 4;
constexpr int kWideRows = 4;
constexpr int kFewIntRows = 4;
constexpr int kBFloatRows = 4;
constexpr int kManyBFloatRows = 24;
constexpr int bfloat_panels(int) {
    return 1;
}

TACHO_INLINE Ints broadcast_int(const void* from) {
    Ints result;
    for (int32_t& lane : result.sum) {
        __builtin_memcpy(&lane, from, sizeof lane);
    }
    return result;
}
TACHO_INLINE Ints zero_ints() {
    return {};
}
TACHO_INLINE Vec to_floats(const Ints& a) {
    Vec result;
    for (int i = 0; i < 16; ++i) {
        result.lane[i] = static_cast<float>(a.sum[i]);
    }
    return result;
}
TACHO_INLINE Vec uint8_floats(Bytes16 bytes) {
    Vec result;
    for (int i = 0; i < 16; ++i) {
        result.lane[i] = static_cast<float>(bytes[i]);
    }
    return result;
}

TACHO_INLINE Ints load_codes(const uint8_t* from) {
    Ints result;
    __builtin_memcpy(&result, from, sizeof result);
    return result;
}

/* Applies an expression of byte and other byte to every byte. */
template <class Each>
TACHO_INLINE Ints each_byte(const Ints& a, const Ints& b, Each each) {
    Ints result;
    for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < 4; ++j) {
            result.code[i][j] = static_cast<uint8_t>(each(a.code[i][j], b.code[i][j]));
        }
    }
    return result;
}
TACHO_INLINE Ints low_nibbles(const Ints& bytes) {
    return each_byte(bytes, bytes, [](int a, int) { return a & 15; });
}
TACHO_INLINE Ints high_nibbles(const Ints& bytes) {
    return each_byte(bytes, bytes, [](int a, int) { return a >> 4; });
}
template <int shift>
TACHO_INLINE Ints with_high_bits(const Ints& nibbles, const Ints& high) {
    return each_byte(nibbles, high, [](int a, int b) { return a | (b >> shift & 3) << 4; });
}

TACHO_INLINE void dot_unsigned(Ints& sum, const Ints& codes, const void* x) {
    int8_t four[4];
    __builtin_memcpy(four, x, sizeof four);
    for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < 4; ++j) {
            sum.sum[i] += codes.code[i][j] * four[j];
        }
    }
}
TACHO_INLINE const Ints& finish_unsigned(const Ints& sum) {
    return sum;
}

/* Never called: kWideProducts is false. */
TACHO_INLINE Ints load_wide(const uint8_t*) {
    return {};
}
TACHO_INLINE void dot_wide(Ints&, const Ints&, const void*) {}
TACHO_INLINE void first_dot_wide(Ints&, const Ints&, const void*) {}

TACHO_INLINE void store_ints(uint8_t* to, const Ints& v) {
    __builtin_memcpy(to, &v, sizeof v);
}

struct ByteTable {
    uint8_t byte[16];
};
TACHO_INLINE ByteTable load_table(const uint8_t* sixteen) {
    ByteTable table;
    __builtin_memcpy(&table, sixteen, sizeof table);
    return table;
}
TACHO_INLINE Ints look_up(const ByteTable& table, const Ints& nibbles) {
    return each_byte(nibbles, nibbles, [&](int a, int) { return table.byte[a]; });
}
TACHO_INLINE Ints interleaved(const Ints& lower, const Ints& upper, int first) {
    Ints result;
    for (int i = 0; i < 32; ++i) {
        const int from = i / 8 * 16 + first + i % 8;
        result.code[i / 2][i % 2 * 2] = lower.code[from / 4][from % 4];
        result.code[i / 2][i % 2 * 2 + 1] = upper.code[from / 4][from % 4];
    }
    return result;
}
TACHO_INLINE Ints interleave_first(const Ints& lower, const Ints& upper) {
    return interleaved(lower, upper, 0);
}
TACHO_INLINE Ints interleave_last(const Ints& lower, const Ints& upper) {
    return interleaved(lower, upper, 8);
}
TACHO_INLINE Vec first_floats(const Ints& pairs) {
    Vec result;
    for (int i = 0; i < 16; ++i) {
        result.lane[i] = float_of(static_cast<uint32_t>(pairs.sum[i]) << 16);
    }
    return result;
}
TACHO_INLINE Vec second_floats(const Ints& pairs) {
    Vec result;
    for (int i = 0; i < 16; ++i) {
        result.lane[i] = float_of(static_cast<uint32_t>(pairs.sum[i]) & 0xffff0000);
    }
    return result;
}

TACHO_INLINE void store_codes(int8_t* to, const Vec& v) {
    for (int i = 0; i < 16; ++i) {
        to[i] = static_cast<int8_t>(v.lane[i]);
    }
}

TACHO_INLINE void code_sums(const int8_t* codes, int32_t (&first)[2], int32_t (&second)[2]) {
    for (int half = 0; half < 2; ++half) {
        first[half] = 0;
        second[half] = 0;
        for (int i = 0; i < 16; ++i) {
            (i % 4 < 2 ? first : second)[half] += codes[half * 16 + i];
        }
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
