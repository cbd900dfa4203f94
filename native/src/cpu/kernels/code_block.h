/*
 * A block of 32 k of a panel of integer codes, unpacked: a byte for each code, [8][16 rows][4 k], and what its sums are
 * scaled by as floats. Bytes are what code_bytes<z> (dots.h) makes of unsigned codes with the offset z.
 *
 *   kParts      runs of k with a scale of their own
 *   kHasMin     whether the block's minimum times the sum of the activations is subtracted
 */
#ifndef TACHO_CPU_KERNELS_CODE_BLOCK_H
#define TACHO_CPU_KERNELS_CODE_BLOCK_H

#include "weights.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

template <int parts>
struct CodeBytes {
    static constexpr int kParts = parts;
    static constexpr bool kHasMin = false;

    alignas(64) uint8_t codes[kQuantBlock * kPanelRows];
    float scale[parts][kPanelRows];

    template <int offset>
    TACHO_INLINE void put_nibbles(const uint8_t* block) {
        for (int64_t j = 0; j < 4; ++j) {
            const Ints bytes = load_codes(block + j * 64);
            store_ints(codes + j * 128, code_bytes<offset>(low_nibbles(bytes)));
            store_ints(codes + j * 128 + 64, code_bytes<offset>(high_nibbles(bytes)));
        }
    }
};

template <class Unit>
struct CodeBlock;

template <>
struct CodeBlock<UnitQ4_0> : CodeBytes<1> {
    TACHO_INLINE void set(const UnitQ4_0* panel, int64_t block) {
        const UnitQ4_0& unit = panel[block / 2];
        put_nibbles<8>(unit.codes[block % 2]);
        store(scale[0], load(unit.scale[block % 2]));
    }
};

template <>
struct CodeBlock<UnitQ4_K> : CodeBytes<1> {
    static constexpr bool kHasMin = true;

    float min[kPanelRows];

    TACHO_INLINE void set(const UnitQ4_K* panel, int64_t block) {
        const UnitQ4_K& unit = panel[block / 8];
        put_nibbles<0>(unit.codes[block % 8]);
        store(scale[0], mul(load(unit.scale), uint8_floats(unit.sub[block % 8].scales())));
        store(min, mul(load(unit.min), uint8_floats(unit.sub[block % 8].mins())));
    }
};

template <>
struct CodeBlock<UnitQ6_K> : CodeBytes<2> {
    TACHO_INLINE void set(const UnitQ6_K* panel, int64_t block) {
        const UnitQ6_K& unit = panel[block / 8];
        const auto& part = unit.part[block % 8 / 2];
        const auto& from = part.block[block % 2];
        for (int64_t half = 0; half < 2; ++half) {
            const Ints high = load_codes(from.high + half * 64);
            const Ints first = load_codes(from.codes + half * 128);
            const Ints second = load_codes(from.codes + half * 128 + 64);
            uint8_t* to = codes + half * 256;
            store_ints(to, code_bytes<32>(with_high_bits<0>(low_nibbles(first), high)));
            store_ints(to + 64, code_bytes<32>(with_high_bits<2>(high_nibbles(first), high)));
            store_ints(to + 128, code_bytes<32>(with_high_bits<4>(low_nibbles(second), high)));
            store_ints(to + 192, code_bytes<32>(with_high_bits<6>(high_nibbles(second), high)));
            store(scale[half], mul(load(unit.scale), load_int8(part.sub_scale[block % 2 * 2 + half])));
        }
    }
};

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
