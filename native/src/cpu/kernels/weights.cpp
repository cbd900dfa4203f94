/* Packing of weight matrices, and rows of them as floats. */
#include "weights.h"

#include "blocks.h"

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

/* ---- packing ----------------------------------------------------------------------------------------------------- */

TACHO_INLINE uint32_t word_at(const uint8_t* from) {
    uint32_t word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}

/* Puts the codes of one row into a block of nibbles, as words of four k. */
TACHO_INLINE void put_nibbles(const uint8_t (&code)[kQuantBlock], int64_t row, uint8_t* codes) {
    for (int64_t k = 0; k < kQuantBlock; k += 8) {
        const uint32_t word = word_at(code + k) | word_at(code + k + 4) << 4;
        __builtin_memcpy(codes + nibble_offset(k, row), &word, sizeof word);
    }
}

void put_block(const BlockQ8_0& block, int64_t index, int64_t row, UnitQ8_0* units) {
    UnitQ8_0& unit = units[index / 2];
    unit.scale[index % 2][row] = block.scale;
    constexpr int64_t together = kWideProducts ? 2 : 4;
    constexpr uint32_t offset = kWideProducts ? 0 : 0x80808080; /* adds 128 to each byte */
    uint8_t code[kQuantBlock];
    block.raw_codes(0, code);
    for (int64_t k = 0; k < kQuantBlock; k += 4) {
        const uint32_t word = word_at(code + k) ^ offset;
        const auto* bytes = reinterpret_cast<const uint8_t*>(&word);
        for (int64_t i = 0; i < 4; i += together) {
            __builtin_memcpy(unit.codes[index % 2] + q8_offset(k + i, row), bytes + i, together);
        }
    }
}

void put_block(const BlockQ4_0& block, int64_t index, int64_t row, UnitQ4_0* units) {
    UnitQ4_0& unit = units[index / 2];
    unit.scale[index % 2][row] = block.scale;
    uint8_t code[kQuantBlock];
    block.raw_codes(0, code);
    put_nibbles(code, row, unit.codes[index % 2]);
}

void put_block(const BlockQ4_K& block, int64_t index, int64_t row, UnitQ4_K* units) {
    UnitQ4_K& unit = units[index];
    unit.scale[row] = block.scale;
    unit.min[row] = block.min;
    for (int64_t s = 0; s < 8; ++s) {
        auto& part = unit.part[s / 2];
        part.sub_scale[s % 2][row] = static_cast<uint8_t>(block.sub_scale(s));
        part.sub_min[s % 2][row] = static_cast<uint8_t>(block.sub_min(s));
        uint8_t code[kQuantBlock];
        block.raw_codes(s, code);
        put_nibbles(code, row, part.codes[s % 2]);
    }
}

void put_block(const BlockQ6_K& block, int64_t index, int64_t row, UnitQ6_K* units) {
    UnitQ6_K& unit = units[index];
    unit.scale[row] = block.scale;
    for (int64_t s = 0; s < 16; ++s) {
        unit.part[s / 4].sub_scale[s % 4][row] = block.sub_scale[s];
    }
    for (int64_t s = 0; s < 8; ++s) {
        auto& to = unit.part[s / 2].block[s % 2];
        uint8_t code[kQuantBlock];
        block.raw_codes(s, code);
        for (int64_t k = 0; k < kQuantBlock; k += 16) {
            uint32_t word = 0;
            for (int64_t r = 0; r < 4; ++r) {
                word |= (word_at(code + k + 4 * r) >> 4 & 0x03030303) << (2 * r);
            }
            __builtin_memcpy(to.high + high_offset(k, row), &word, sizeof word);
        }
        for (uint8_t& c : code) {
            c &= 15;
        }
        put_nibbles(code, row, to.codes);
    }
}

/* Packs the rows of one panel; source is their first row in file layout, at any alignment. */
template <class Element>
void pack_elements(const uint8_t* source, int64_t rows, int64_t k, int64_t together, Element* packed) {
    const int64_t padded = (k + together - 1) / together * together;
    for (int64_t i = 0; i < padded; ++i) {
        for (int64_t row = 0; row < kPanelRows; ++row) {
            Element element = {};
            if (row < rows && i < k) {
                __builtin_memcpy(&element, source + (row * k + i) * static_cast<int64_t>(sizeof element),
                                 sizeof element);
            }
            packed[i / together * together * kPanelRows + row * together + i % together] = element;
        }
    }
}

template <class Block, class Unit>
void pack_blocks(const uint8_t* source, int64_t rows, int64_t k, Unit* packed) {
    const int64_t blocks = k / Block::kElements;
    if (rows < kPanelRows || k % Unit::kElements != 0) {
        __builtin_memset(packed, 0, static_cast<unsigned long>(panel_units(packed, k)) * sizeof *packed);
    }
    for (int64_t b = 0; b < blocks; ++b) {
        for (int64_t row = 0; row < rows; ++row) {
            Block block;
            __builtin_memcpy(&block, source + (row * blocks + b) * static_cast<int64_t>(sizeof block), sizeof block);
            put_block(block, b, row, packed);
        }
    }
}

void pack_panel(const uint8_t* source, int64_t rows, int64_t k, float* packed) {
    pack_elements(source, rows, k, 1, packed);
}
void pack_panel(const uint8_t* source, int64_t rows, int64_t k, Half* packed) {
    pack_elements(source, rows, k, 1, packed);
}
inline void pack_panel(const uint8_t* source, int64_t rows, int64_t k, BFloat* packed) {
    pack_elements(source, rows, k, 1, packed);
}
inline void pack_panel(const uint8_t* source, int64_t rows, int64_t k, BFloatPair* packed) {
    pack_elements(source, rows, k, 2, reinterpret_cast<BFloat*>(packed));
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
