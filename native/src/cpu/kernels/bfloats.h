/*
 * BF16 weights in 12 bits, without loss. The upper byte of a bfloat is its sign and all but the last bit of its
 * exponent, and weights of a matrix are so near in size that eight magnitudes hold nearly all of them: that of zero, and
 * seven that follow each other, a factor of 4 apart. With the sign they are 16 upper bytes, which a code of 4 bits looks
 * up in a table of its panel. The lower byte stays as it is.
 *
 * A weight whose upper byte is not in the table is an exception, of which a panel has a short list; in Gaussian weights
 * one of 1,200 to 5,000 is one. A panel with more of them than its list holds is plain: its codes are the lower nibbles
 * of the upper bytes, and the upper nibbles lie in its tail, behind all panels, where else nobody reads.
 *
 *   matrix    panels, then their tails of [ceil(k / 8)][64] bytes
 *   panel     | BFloatHeader | exceptions, to a multiple of 64 bytes | UnitBF16 [ceil(k / 8)] |
 *   unit      8 k, 192 bytes: | codes [64] | lower bytes [2][64] |
 *             byte bfloat_place(k, row) of 128, the first half of 4 k, the second of the next; code byte i holds those of
 *             bytes i (low nibble) and 64 + i; tails alike
 */
#ifndef TACHO_CPU_KERNELS_BFLOATS_H
#define TACHO_CPU_KERNELS_BFLOATS_H

#include "weights.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

struct BFloatHeader {
    uint8_t upper[16]; /* by code: bit 3 is the sign, code 0 and 8 are magnitude 0 */
    int32_t plain;
    uint8_t unused[44];
};
static_assert(sizeof(BFloatHeader) == 64, "no padding");

struct UnitBF16 {
    static constexpr int64_t kElements = 8;
    static constexpr int64_t kHalfBytes = kElements / 2 * kPanelRows;
    uint8_t codes[kHalfBytes];
    uint8_t lower[2][kHalfBytes];
};
static_assert(sizeof(UnitBF16) == 192, "no padding");

/* Where in a unit: so that bytes interleave to pairs of two k, [2 pairs][16 rows][2 k] of each half. */
TACHO_INLINE int64_t bfloat_place(int64_t k, int64_t row) {
    return k / 4 * UnitBF16::kHalfBytes + row / 4 * 16 + k / 2 % 2 * 8 + row % 4 * 2 + k % 2;
}

/* An upper byte that is not in the table. */
struct BFloatException {
    uint32_t unit_place_upper; /* unit << 15 | place << 8 | upper byte */

    TACHO_INLINE int64_t unit() const { return unit_place_upper >> 15; }
    TACHO_INLINE int64_t place() const { return unit_place_upper >> 8 & 127; }
    TACHO_INLINE uint8_t upper() const { return static_cast<uint8_t>(unit_place_upper); }
};

/* After the last exception; a panel with a unit of this number or a larger one is plain. */
constexpr BFloatException kNoException = {~uint32_t{0}};

/* Where a panel's parts are. */
struct BFloatPanel {
    BFloatHeader* header;
    BFloatException* exceptions;
    int64_t most_exceptions; /* besides the one that ends the list */
    UnitBF16* units;
    uint8_t* tail;

    static TACHO_INLINE int64_t units_of(int64_t k) { return (k + UnitBF16::kElements - 1) / UnitBF16::kElements; }
    /* One exception for two units, and the end. */
    static TACHO_INLINE int64_t list_bytes(int64_t k) { return (units_of(k) / 2 * 4 + 4 + 63) / 64 * 64; }
    static TACHO_INLINE int64_t bytes(int64_t k) {
        return static_cast<int64_t>(sizeof(BFloatHeader)) + list_bytes(k) +
               units_of(k) * static_cast<int64_t>(sizeof(UnitBF16));
    }
    static TACHO_INLINE int64_t tail_bytes(int64_t k) { return units_of(k) * UnitBF16::kHalfBytes; }

    static TACHO_INLINE BFloatPanel of(void* packed, int64_t panel, int64_t n, int64_t k) {
        auto* matrix = static_cast<uint8_t*>(packed);
        uint8_t* at = matrix + panel * bytes(k);
        uint8_t* list = at + sizeof(BFloatHeader);
        return {reinterpret_cast<BFloatHeader*>(at),
                reinterpret_cast<BFloatException*>(list),
                list_bytes(k) / 4 - 1,
                reinterpret_cast<UnitBF16*>(list + list_bytes(k)),
                matrix + panel_count(n) * bytes(k) + panel * tail_bytes(k)};
    }
};

/*
 * What a step of a product takes of a row of x: two bfloats, whose products are exact and are added to a float, or one
 * float.
 */
#if TACHO_BFLOAT_PRODUCTS
struct BFloatX {
    BFloat k[2];
};
#else
using BFloatX = float;
#endif
constexpr int64_t kStepElements = TACHO_BFLOAT_PRODUCTS ? 2 : 1;
constexpr int64_t kUnitSteps = UnitBF16::kElements / kStepElements;

/* Reads a panel front to back. */
class BFloatReader {
  public:
    BFloatReader() = default;
    TACHO_INLINE BFloatReader(const void* packed, int64_t panel, int64_t n, int64_t k) {
        /* Nothing is written through it. */
        const BFloatPanel place = BFloatPanel::of(const_cast<void*>(packed), panel, n, k);
        units_ = place.units;
        table_ = load_table(place.header->upper);
        exception_ = place.exceptions;
        tail_ = place.header->plain != 0 ? place.tail : nullptr;
        special_ = tail_ != nullptr ? 0 : exception_->unit();
    }

    /* Asks memory for unit u, which may be one past the end. */
    TACHO_INLINE void ask_for(int64_t u) const {
        const auto* at = reinterpret_cast<const uint8_t*>(units_ + u);
        for (int64_t line = 0; line < static_cast<int64_t>(sizeof(UnitBF16)); line += 64) {
            __builtin_prefetch(at + line);
        }
    }

    /* Pairs of two k, 16 rows side by side, of unit u; units are asked for in ascending order. */
    TACHO_INLINE void read(int64_t u, Ints (&pairs)[4]) {
        const UnitBF16& unit = units_[u];
        const Ints codes = load_codes(unit.codes);
        Ints upper[2] = {look_up(table_, low_nibbles(codes)), look_up(table_, high_nibbles(codes))};
        if (__builtin_expect(u == special_, 0)) {
            correct(u, upper);
        }
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
            const Ints lower = load_codes(unit.lower[half]);
            pairs[2 * half] = interleave_first(lower, upper[half]);
            pairs[2 * half + 1] = interleave_last(lower, upper[half]);
        }
    }

  private:
    TACHO_INLINE void correct(int64_t u, Ints (&upper)[2]) {
        constexpr int64_t half = UnitBF16::kHalfBytes;
        alignas(64) uint8_t bytes[2 * half];
        store_ints(bytes, upper[0]);
        store_ints(bytes + half, upper[1]);
        if (tail_ != nullptr) {
            const uint8_t* codes = units_[u].codes;
            const uint8_t* tail = tail_ + u * half;
            for (int64_t i = 0; i < half; ++i) {
                bytes[i] = static_cast<uint8_t>((codes[i] & 15) | tail[i] << 4);
                bytes[half + i] = static_cast<uint8_t>(codes[i] >> 4 | (tail[i] & 0xf0));
            }
            special_ = u + 1;
        } else {
            for (; exception_->unit() == u; ++exception_) {
                bytes[exception_->place()] = exception_->upper();
            }
            special_ = exception_->unit();
        }
        upper[0] = load_codes(bytes);
        upper[1] = load_codes(bytes + half);
    }

    const UnitBF16* units_;
    ByteTable table_;
    const BFloatException* exception_;
    const uint8_t* tail_;
    int64_t special_; /* the next unit that is not read by the table alone */
};

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
