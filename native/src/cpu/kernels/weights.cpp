/* Packing of weight matrices, and rows of them as floats. */
#include "weights.h"

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
int64_t file_bytes(const BFloatUnit*, int64_t k) {
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
            unit.part[s / 2].sub_scale[s % 2][row] = static_cast<uint8_t>(block.sub_scale(s));
            unit.part[s / 2].sub_min[s % 2][row] = static_cast<uint8_t>(block.sub_min(s));
        }
    });
#pragma GCC unroll 8
    for (int64_t s = 0; s < 8; ++s) {
        put_nibbles(column, s, unit.part[s / 2].codes[s % 2]);
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

/* Elements, or pairs of them, as they are. */
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

template <class Unit>
Unit* writable_panel(const Unit* type, void* packed, int64_t panel, int64_t k) {
    return static_cast<Unit*>(packed) + panel * panel_units(type, k);
}

/* ---- one row of a panel as k floats ------------------------------------------------------------------------------ */

template <class Element>
void unpack_row(const Element* panel, int64_t row, int64_t k, float* y) {
    for (int64_t i = 0; i < k; ++i) {
        y[i] = to_float(panel[i * kPanelRows + row]);
    }
}

inline void unpack_row(const BFloatPair* panel, int64_t row, int64_t k, float* y) {
    for (int64_t i = 0; i < k; ++i) {
        y[i] = to_float(panel[i / 2 * kPanelRows + row].k[i % 2]);
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
    for (int64_t i = 0; i < k; ++i) {
        const UnitQ4_K& unit = panel[i / UnitQ4_K::kElements];
        const int64_t sub = i % UnitQ4_K::kElements / kQuantBlock;
        const auto& part = unit.part[sub / 2];
        const float scale = to_float(unit.scale[row]) * part.sub_scale[sub % 2][row];
        const float min = to_float(unit.min[row]) * part.sub_min[sub % 2][row];
        y[i] = scale * static_cast<float>(nibble(part.codes[sub % 2], i % kQuantBlock, row)) - min;
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

}  // namespace

int64_t weight_bytes(int32_t dtype, int64_t n, int64_t k) {
    int64_t bytes = 0;
    with_weight_type(dtype, [&](const auto* type) {
        bytes = panel_count(n) * panel_units(type, k) * static_cast<int64_t>(sizeof *type);
    });
    return bytes;
}

void weight_pack(const tacho_weight_pack_params& p, int64_t begin, int64_t end) {
    with_weight_type(p.dtype, [&](const auto* type) {
        const auto* source = static_cast<const uint8_t*>(p.source);
        for (int64_t panel = begin; panel < end; ++panel) {
            const int64_t first = panel * kPanelRows;
            const int64_t rows = smaller(kPanelRows, p.n - first);
            pack_panel(source + first * file_bytes(type, p.k), rows, p.k, writable_panel(type, p.packed, panel, p.k));
        }
    });
}

void embedding_lookup(const tacho_embedding_lookup_params& p, int64_t begin, int64_t end) {
    with_weight_type(p.dtype, [&](const auto* type) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t id = p.ids[i];
            unpack_row(panel_at(type, p.w, id / kPanelRows, p.k), id % kPanelRows, p.k, p.y + i * p.ldy);
        }
    });
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
