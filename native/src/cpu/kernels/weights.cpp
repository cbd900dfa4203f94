/* Packing of weight matrices, and rows of them as floats. */
#include "weights.h"

#include "bfloats.h"
#include "blocks.h"
#include "transpose.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* ---- where the code of one k of one row lies in a unit ----------------------------------------------------------- */

TACHO_INLINE int64_t q8_offset(int64_t k, int64_t row) {
    constexpr int64_t together = kWideProducts ? 2 : 4;
    return k / together * together * kPanelRows + row * together + k % together;
}

TACHO_INLINE int64_t nibble_offset(int64_t k, int64_t row) {
    return k / 8 * 4 * kPanelRows + row * 4 + k % 4;
}

TACHO_INLINE int nibble_shift(int64_t k) {
    return k % 8 < 4 ? 0 : 4;
}

TACHO_INLINE int nibble(const uint8_t* codes, int64_t k, int64_t row) {
    return codes[nibble_offset(k, row)] >> nibble_shift(k) & 15;
}

TACHO_INLINE int64_t high_offset(int64_t k, int64_t row) {
    return k / 16 * 4 * kPanelRows + row * 4 + k % 4;
}

TACHO_INLINE int high_shift(int64_t k) {
    return static_cast<int>(k % 16 / 4 * 2);
}

/* ---- rows as they lie in a file --------------------------------------------------------------------------------- */

int64_t file_bytes(const float*, int64_t k) {
    return k * 4;
}
int64_t file_bytes(const Half*, int64_t k) {
    return k * 2;
}
int64_t file_bytes(const UnitQ8_0*, int64_t k) {
    return k / BlockQ8_0::kElements * static_cast<int64_t>(sizeof(BlockQ8_0));
}
int64_t file_bytes(const UnitQ4_0*, int64_t k) {
    return k / BlockQ4_0::kElements * static_cast<int64_t>(sizeof(BlockQ4_0));
}
int64_t file_bytes(const UnitQ4_K*, int64_t k) {
    return k / BlockQ4_K::kElements * static_cast<int64_t>(sizeof(BlockQ4_K));
}
int64_t file_bytes(const UnitQ6_K*, int64_t k) {
    return k / BlockQ6_K::kElements * static_cast<int64_t>(sizeof(BlockQ6_K));
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

constexpr int64_t kTileBytes = 16 * kPanelRows;

/* Codes in [0, 15] of k 0..15 and 16..31 of a row as one row of a block of nibbles. */
TACHO_INLINE Bytes16 nibble_row(Bytes16 first, Bytes16 second) {
    return even_words(first, second) | odd_words(first, second) << 4;
}

/* One block of each row of a panel, `distance` bytes apart. `Full` is whether all 16 rows are there; what is missing
 * counts as zeros. */
template <class Block, bool Full>
class BlockColumn {
  public:
    TACHO_INLINE BlockColumn(const uint8_t* source, int64_t rows, int64_t distance)
        : source_(source), rows_(rows), distance_(distance) {}

    template <class Body>
    TACHO_INLINE void each(Body body) const {
        const int64_t rows = Full ? kPanelRows : rows_;
        for (int64_t row = 0; row < rows; ++row) {
            body(row, block(row));
        }
    }

    /* Turns the 16 bytes that body gives of each block. */
    template <int width, class Body>
    TACHO_INLINE void turn(uint8_t* to, Body body) const {
        transpose<width>([&](int64_t row) { return Full || row < rows_ ? body(block(row)) : Bytes16{}; }, to);
    }

  private:
    TACHO_INLINE const Block& block(int64_t row) const {
        return *reinterpret_cast<const Block*>(source_ + row * distance_);
    }

    const uint8_t* source_;
    int64_t rows_;
    int64_t distance_;
};

/* Turns the codes from element 32 i into a block of nibbles. */
template <class Block, bool Full>
TACHO_INLINE void put_nibbles(const BlockColumn<Block, Full>& column, int64_t i, uint8_t* to) {
    column.template turn<4>(to, [&](const Block& block) {
        Bytes16 first;
        Bytes16 second;
        block.nibbles(i, first, second);
        return nibble_row(first, second);
    });
}

template <bool Full>
TACHO_INLINE void put_column(const BlockColumn<BlockQ8_0, Full>& column, int64_t index, UnitQ8_0* units) {
    UnitQ8_0& unit = units[index / 2];
    column.each([&](int64_t row, const BlockQ8_0& block) { unit.scale[index % 2][row] = block.scale.value(); });
    constexpr int width = kWideProducts ? 2 : 4;
    constexpr uint8_t offset = kWideProducts ? 0 : 128;
    for (int64_t part = 0; part < 2; ++part) {
        column.template turn<width>(unit.codes[index % 2] + part * kTileBytes, [&](const BlockQ8_0& block) {
            return load_bytes(block.code + part * 16) ^ offset;
        });
    }
}

template <bool Full>
TACHO_INLINE void put_column(const BlockColumn<BlockQ4_0, Full>& column, int64_t index, UnitQ4_0* units) {
    UnitQ4_0& unit = units[index / 2];
    column.each([&](int64_t row, const BlockQ4_0& block) { unit.scale[index % 2][row] = block.scale.value(); });
    put_nibbles(column, 0, unit.codes[index % 2]);
}

template <bool Full>
TACHO_INLINE void put_column(const BlockColumn<BlockQ4_K, Full>& column, int64_t index, UnitQ4_K* units) {
    UnitQ4_K& unit = units[index];
    column.each([&](int64_t row, const BlockQ4_K& block) {
        unit.scale[row] = block.scale.value();
        unit.min[row] = block.min.value();
        for (int64_t s = 0; s < 8; ++s) {
            unit.sub[s].set(row, block.sub_scale(s), block.sub_min(s));
        }
    });
#pragma GCC unroll 8
    for (int64_t s = 0; s < 8; ++s) {
        put_nibbles(column, s, unit.codes[s]);
    }
}

template <bool Full>
TACHO_INLINE void put_column(const BlockColumn<BlockQ6_K, Full>& column, int64_t index, UnitQ6_K* units) {
    UnitQ6_K& unit = units[index];
    __builtin_memset(unit.unused, 0, sizeof unit.unused);
    column.each([&](int64_t row, const BlockQ6_K& block) {
        unit.scale[row] = block.scale.value();
        for (int64_t s = 0; s < 16; ++s) {
            unit.part[s / 4].sub_scale[s % 4][row] = block.sub_scale[s];
        }
    });
#pragma GCC unroll 8
    for (int64_t s = 0; s < 8; ++s) {
        auto& to = unit.part[s / 2].block[s % 2];
        put_nibbles(column, s, to.codes);
#pragma GCC unroll 2
        for (int64_t part = 0; part < 2; ++part) {
            uint8_t bits[4][kTileBytes / 4]; /* word r of each row; goes to bits 2 r and 2 r + 1 */
            column.template turn<4>(bits[0], [&](const BlockQ6_K& block) { return block.high_bits(s, part); });
            for (int64_t i = 0; i < kTileBytes / 4; ++i) {
                to.high[part * kTileBytes / 4 + i] =
                    static_cast<uint8_t>(bits[0][i] | bits[1][i] << 2 | bits[2][i] << 4 | bits[3][i] << 6);
            }
        }
    }
}

/* Packs the rows of one panel; source is their first row in file layout, at any alignment. `width` bytes of a row stay
 * together. */
template <int width>
void pack_elements(const uint8_t* source, int64_t rows, int64_t row_bytes, uint8_t* packed) {
    int64_t at = 0;
    if (rows == kPanelRows) {
        for (; at + 16 <= row_bytes; at += 16) {
            transpose<width>([&](int64_t row) { return load_bytes(source + row * row_bytes + at); },
                             packed + at * kPanelRows);
        }
    }
    for (; at < row_bytes; at += 16) {
        const int64_t bytes = smaller(16, row_bytes - at);
        uint8_t tile[kTileBytes];
        transpose<width>(
            [&](int64_t row) {
                return row < rows ? load_bytes(source + row * row_bytes + at, bytes) : Bytes16{};
            },
            tile);
        const int64_t words = (bytes + width - 1) / width;
        __builtin_memcpy(packed + at * kPanelRows, tile, static_cast<unsigned long>(words * width * kPanelRows));
    }
}

template <class Block, bool Full, class Unit>
void pack_columns(const uint8_t* source, int64_t rows, int64_t blocks, Unit* packed) {
    const auto block_bytes = static_cast<int64_t>(sizeof(Block));
    for (int64_t b = 0; b < blocks; ++b) {
        put_column(BlockColumn<Block, Full>(source + b * block_bytes, rows, blocks * block_bytes), b, packed);
    }
}

template <class Block, class Unit>
void pack_blocks(const uint8_t* source, int64_t rows, int64_t k, Unit* packed) {
    const int64_t blocks = k / Block::kElements;
    if (rows < kPanelRows || k % Unit::kElements != 0) {
        __builtin_memset(packed, 0, static_cast<unsigned long>(panel_units(packed, k)) * sizeof *packed);
    }
    if (rows == kPanelRows) {
        pack_columns<Block, true>(source, rows, blocks, packed);
    } else {
        pack_columns<Block, false>(source, rows, blocks, packed);
    }
}

/* Elements as they are. */
template <class Element>
void pack_panel(const uint8_t* source, int64_t rows, int64_t k, Element* packed) {
    pack_elements<static_cast<int>(sizeof *packed)>(source, rows, file_bytes(packed, k),
                                                    reinterpret_cast<uint8_t*>(packed));
}
void pack_panel(const uint8_t* source, int64_t rows, int64_t k, UnitQ8_0* packed) {
    pack_blocks<BlockQ8_0>(source, rows, k, packed);
}
void pack_panel(const uint8_t* source, int64_t rows, int64_t k, UnitQ4_0* packed) {
    pack_blocks<BlockQ4_0>(source, rows, k, packed);
}
void pack_panel(const uint8_t* source, int64_t rows, int64_t k, UnitQ4_K* packed) {
    pack_blocks<BlockQ4_K>(source, rows, k, packed);
}
void pack_panel(const uint8_t* source, int64_t rows, int64_t k, UnitQ6_K* packed) {
    pack_blocks<BlockQ6_K>(source, rows, k, packed);
}

/* ---- packing of BF16 --------------------------------------------------------------------------------------------- */

constexpr int64_t kColumnUnits = 2;
constexpr int64_t kColumn = kColumnUnits * UnitBF16::kElements;
constexpr int64_t kUnitBytes = 2 * UnitBF16::kHalfBytes;

/* Sixteen k of the rows of a panel, or what is left of them: their lower and upper bytes, each at its place. */
struct BFloatColumn {
    uint8_t lower[kColumnUnits][kUnitBytes];
    uint8_t upper[kColumnUnits][kUnitBytes];

    /* `source` is the first of the k of the first row, `count` how many there are. */
    TACHO_INLINE void load(const uint8_t* source, int64_t rows, int64_t row_bytes, int64_t count) {
        uint8_t turned[kTileBytes];
        const auto each = [&](auto select) {
            return [=](int64_t row) {
                if (row >= rows) {
                    return Bytes16{};
                }
                const uint8_t* at = source + row * row_bytes;
                return count == kColumn ? select(load_bytes(at), load_bytes(at + 16))
                                        : select(load_bytes(at, smaller(16, 2 * count)),
                                                 load_bytes(at + 16, larger(0, 2 * count - 16)));
            };
        };
        transpose<2>(each([](Bytes16 a, Bytes16 b) { return even_bytes(a, b); }), turned);
        order(turned, lower);
        transpose<2>(each([](Bytes16 a, Bytes16 b) { return odd_bytes(a, b); }), turned);
        order(turned, upper);
    }

  private:
    /* From [8 pairs][16 rows][2 k]. */
    static TACHO_INLINE void order(const uint8_t* turned, uint8_t (&to)[kColumnUnits][kUnitBytes]) {
        for (int64_t pair = 0; pair < kColumn / 2; ++pair) {
            for (int64_t row = 0; row < kPanelRows; row += 4) {
                __builtin_memcpy(to[pair / 4] + bfloat_place(pair % 4 * 2, row), turned + (pair * kPanelRows + row) * 2,
                                 8);
            }
        }
    }
};

/* Which upper bytes have a code: magnitude 0 and seven others, from `lowest` on. */
struct BFloatTable {
    static constexpr int kMagnitudes = 7;
    int lowest;

    TACHO_INLINE bool lacks(uint8_t upper) const {
        const int magnitude = upper & 127;
        return magnitude != 0 && static_cast<uint8_t>(magnitude - lowest) >= kMagnitudes;
    }
    TACHO_INLINE uint8_t code(uint8_t upper) const {
        const int magnitude = upper & 127;
        return static_cast<uint8_t>((magnitude == 0 ? 0 : (magnitude - lowest + 1) & 7) | (upper >> 4 & 8));
    }
    void put(uint8_t (&bytes)[16]) const {
        for (int code = 0; code < 16; ++code) {
            const int magnitude = code % 8 == 0 ? 0 : lowest + code % 8 - 1;
            bytes[code] = static_cast<uint8_t>(code / 8 << 7 | magnitude);
        }
    }

    /* The one with the fewest exceptions among some elements of each row; of equal ones the one whose largest magnitude
     * occurs: what is larger is rarer than what is smaller. */
    static BFloatTable choose(const uint8_t* source, int64_t rows, int64_t k) {
        constexpr int64_t enough = 128;
        const int64_t step = larger(1, k / enough) | 1; /* odd, as content repeats in powers of 2 */
        int32_t below[129] = {}; /* how many have a magnitude below the index */
        for (int64_t row = 0; row < rows; ++row) {
            for (int64_t i = 0; i < k; i += step) {
                ++below[(source[(row * k + i) * 2 + 1] & 127) + 1];
            }
        }
        BFloatTable best{1};
        int32_t most = -1;
        below[1] = 0; /* magnitude 0 has a code in every table */
        for (int magnitude = 1; magnitude < 128; ++magnitude) {
            below[magnitude + 1] += below[magnitude];
        }
        for (int lowest = 1; lowest + kMagnitudes <= 128; ++lowest) {
            const int32_t covered = below[lowest + kMagnitudes] - below[lowest];
            const bool has_top = below[lowest + kMagnitudes] > below[lowest + kMagnitudes - 1];
            if (covered > most || (covered == most && has_top)) {
                most = covered;
                best.lowest = lowest;
            }
        }
        return best;
    }
};

class BFloatPacker {
  public:
    BFloatPacker(const BFloatPanel& panel, const uint8_t* source, int64_t rows, int64_t k)
        : panel_(panel), source_(source), rows_(rows), k_(k), table_(BFloatTable::choose(source, rows, k)) {}

    void pack() {
        *panel_.header = {};
        table_.put(panel_.header->upper);
        if (BFloatPanel::units_of(k_) > kNoException.unit() || !pack_units<false>()) {
            panel_.header->plain = 1;
            pack_units<true>();
        }
    }

  private:
    /* False if there are too many exceptions. */
    template <bool plain>
    bool pack_units() {
        exceptions_ = 0;
        for (int64_t at = 0; at < k_; at += kColumn) {
            const int64_t count = smaller(kColumn, k_ - at);
            BFloatColumn column;
            column.load(source_ + at * 2, rows_, k_ * 2, count);
            for (int64_t i = 0; i * UnitBF16::kElements < count; ++i) {
                const int64_t u = at / UnitBF16::kElements + i;
                UnitBF16& unit = panel_.units[u];
                __builtin_memcpy(unit.lower, column.lower[i], sizeof unit.lower);
                if (plain) {
                    put_plain(column.upper[i], unit.codes, panel_.tail + u * UnitBF16::kHalfBytes);
                } else if (!put_codes(column.upper[i], u)) {
                    return false;
                }
            }
        }
        panel_.exceptions[exceptions_] = kNoException;
        return true;
    }

    TACHO_INLINE bool put_codes(const uint8_t (&upper)[kUnitBytes], int64_t u) {
        constexpr int64_t half = UnitBF16::kHalfBytes;
        uint8_t* codes = panel_.units[u].codes;
        uint8_t lacking = 0;
        for (int64_t i = 0; i < half; ++i) {
            lacking |= static_cast<uint8_t>(table_.lacks(upper[i]) | table_.lacks(upper[half + i]));
            codes[i] = static_cast<uint8_t>(table_.code(upper[i]) | table_.code(upper[half + i]) << 4);
        }
        for (int64_t i = 0; lacking != 0 && i < kUnitBytes; ++i) {
            if (table_.lacks(upper[i])) {
                if (exceptions_ == panel_.most_exceptions) {
                    return false;
                }
                panel_.exceptions[exceptions_++] = {static_cast<uint32_t>(u << 15 | i << 8 | upper[i])};
            }
        }
        return true;
    }

    static TACHO_INLINE void put_plain(const uint8_t (&upper)[kUnitBytes], uint8_t* codes, uint8_t* tail) {
        constexpr int64_t half = UnitBF16::kHalfBytes;
        for (int64_t i = 0; i < half; ++i) {
            codes[i] = static_cast<uint8_t>((upper[i] & 15) | upper[half + i] << 4);
            tail[i] = static_cast<uint8_t>(upper[i] >> 4 | (upper[half + i] & 0xf0));
        }
    }

    const BFloatPanel panel_;
    const uint8_t* source_;
    int64_t rows_;
    int64_t k_;
    BFloatTable table_;
    int64_t exceptions_ = 0;
};

/* ---- one row of a panel as k floats ------------------------------------------------------------------------------ */

template <class Element>
void unpack_row(const Element* panel, int64_t row, int64_t k, float* y) {
    for (int64_t i = 0; i < k; ++i) {
        y[i] = to_float(panel[i * kPanelRows + row]);
    }
}

void unpack_row(const UnitQ8_0* panel, int64_t row, int64_t k, float* y) {
    for (int64_t i = 0; i < k; ++i) {
        const UnitQ8_0& unit = panel[i / UnitQ8_0::kElements];
        const int64_t half = i / kQuantBlock % 2;
        const uint8_t raw = unit.codes[half][q8_offset(i % kQuantBlock, row)];
        const int code = kWideProducts ? static_cast<int8_t>(raw) : raw - 128;
        y[i] = static_cast<float>(code) * to_float(unit.scale[half][row]);
    }
}

void unpack_row(const UnitQ4_0* panel, int64_t row, int64_t k, float* y) {
    for (int64_t i = 0; i < k; ++i) {
        const UnitQ4_0& unit = panel[i / UnitQ4_0::kElements];
        const int64_t half = i / kQuantBlock % 2;
        const int code = nibble(unit.codes[half], i % kQuantBlock, row) - 8;
        y[i] = static_cast<float>(code) * to_float(unit.scale[half][row]);
    }
}

void unpack_row(const UnitQ4_K* panel, int64_t row, int64_t k, float* y) {
    for (int64_t block = 0; block < k / kQuantBlock; ++block) {
        const UnitQ4_K& unit = panel[block / 8];
        const SubQ4_K& sub = unit.sub[block % 8];
        const float scale = to_float(unit.scale[row]) * sub.scales()[row];
        const float min = to_float(unit.min[row]) * sub.mins()[row];
        for (int64_t i = 0; i < kQuantBlock; ++i) {
            y[block * kQuantBlock + i] = scale * static_cast<float>(nibble(unit.codes[block % 8], i, row)) - min;
        }
    }
}

void unpack_row(const UnitQ6_K* panel, int64_t row, int64_t k, float* y) {
    for (int64_t i = 0; i < k; ++i) {
        const UnitQ6_K& unit = panel[i / UnitQ6_K::kElements];
        const int64_t element = i % UnitQ6_K::kElements;
        const auto& part = unit.part[element / 64];
        const auto& block = part.block[element / kQuantBlock % 2];
        const int64_t in_block = i % kQuantBlock;
        const int high = block.high[high_offset(in_block, row)] >> high_shift(in_block) & 3;
        const int code = (nibble(block.codes, in_block, row) | high << 4) - 32;
        y[i] = to_float(unit.scale[row]) * part.sub_scale[element / 16 % 4][row] * static_cast<float>(code);
    }
}

void unpack_row(const BFloatPanel& panel, int64_t row, int64_t k, float* y) {
    constexpr int64_t half = UnitBF16::kHalfBytes;
    const bool plain = panel.header->plain != 0;
    const BFloatException* exception = panel.exceptions;
    const BFloatException* end = exception + panel.most_exceptions;
    for (int64_t i = 0; i < k; ++i) {
        const int64_t u = i / UnitBF16::kElements;
        const UnitBF16& unit = panel.units[u];
        const int64_t place = bfloat_place(i % UnitBF16::kElements, row);
        const int shift = place < half ? 0 : 4;
        const int code = unit.codes[place % half] >> shift & 15;
        int upper = panel.header->upper[code];
        if (plain) {
            upper = code | (panel.tail[u * half + place % half] >> shift & 15) << 4;
        } else {
            for (; exception < end && exception->unit() < u; ++exception) {
            }
            for (const BFloatException* other = exception; other < end && other->unit() == u; ++other) {
                upper = other->place() == place ? other->upper() : upper;
            }
        }
        y[i] = to_float(BFloat{static_cast<uint16_t>(upper << 8 | unit.lower[place / half][place % half])});
    }
}

/* ---- any type ---------------------------------------------------------------------------------------------------- */

/* How a packed matrix of units or elements is packed and read. */
template <class Unit>
struct UnitMatrix {
    static int64_t bytes(int64_t n, int64_t k) {
        return panel_count(n) * panel_units(type(), k) * static_cast<int64_t>(sizeof(Unit));
    }
    static int64_t row_bytes(int64_t k) { return file_bytes(type(), k); }
    static void pack(void* packed, int64_t panel, int64_t, int64_t k, const uint8_t* source, int64_t rows) {
        pack_panel(source, rows, k, static_cast<Unit*>(packed) + panel * panel_units(type(), k));
    }
    static void unpack(const void* packed, int64_t row, int64_t, int64_t k, float* y) {
        unpack_row(panel_at(type(), packed, row / kPanelRows, k), row % kPanelRows, k, y);
    }

  private:
    static const Unit* type() { return nullptr; }
};

struct BFloatMatrix {
    static int64_t bytes(int64_t n, int64_t k) {
        return panel_count(n) * (BFloatPanel::bytes(k) + BFloatPanel::tail_bytes(k));
    }
    static int64_t row_bytes(int64_t k) { return k * 2; }
    static void pack(void* packed, int64_t panel, int64_t n, int64_t k, const uint8_t* source, int64_t rows) {
        BFloatPacker(BFloatPanel::of(packed, panel, n, k), source, rows, k).pack();
    }
    static void unpack(const void* packed, int64_t row, int64_t n, int64_t k, float* y) {
        const BFloatPanel panel = BFloatPanel::of(const_cast<void*>(packed), row / kPanelRows, n, k);
        unpack_row(panel, row % kPanelRows, k, y);
    }
};

/* Calls body with a value of the matrix's type. */
template <class Body>
TACHO_INLINE void with_matrix(int32_t dtype, Body body) {
    switch (dtype) {
        case TACHO_DTYPE_F32:
            return body(UnitMatrix<float>());
        case TACHO_DTYPE_F16:
            return body(UnitMatrix<Half>());
        case TACHO_DTYPE_BF16:
            return body(BFloatMatrix());
        case TACHO_DTYPE_Q8_0:
            return body(UnitMatrix<UnitQ8_0>());
        case TACHO_DTYPE_Q4_0:
            return body(UnitMatrix<UnitQ4_0>());
        case TACHO_DTYPE_Q4_K:
            return body(UnitMatrix<UnitQ4_K>());
        default:
            return body(UnitMatrix<UnitQ6_K>());
    }
}

}  // namespace

int64_t weight_bytes(int32_t dtype, int64_t n, int64_t k) {
    int64_t bytes = 0;
    with_matrix(dtype, [&](auto matrix) { bytes = matrix.bytes(n, k); });
    return bytes;
}

void weight_pack(const tacho_weight_pack_params& p, int64_t begin, int64_t end) {
    with_matrix(p.dtype, [&](auto matrix) {
        const auto* source = static_cast<const uint8_t*>(p.source);
        for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t first = panel * kPanelRows;
            const int64_t rows = smaller(kPanelRows, p.n - first);
            matrix.pack(p.packed, panel, p.n, p.k, source + first * matrix.row_bytes(p.k), rows);
        }
    });
}

void embedding_lookup(const tacho_embedding_lookup_params& p, int64_t begin, int64_t end) {
    with_matrix(p.dtype, [&](auto matrix) {
        for (int64_t i = begin; i < end; ++i) {
            matrix.unpack(p.w, p.ids[i], p.n, p.k, p.y + i * p.ldy);
        }
    });
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
