/* Packing of weight matrices, and rows of them as floats. */
#include "weights.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* Packs the rows of one panel; source is their first row in file layout, at any alignment. */
template <class Element>
void pack_panel(const uint8_t* source, int64_t rows, int64_t k, Element* packed) {
    for (int64_t row = 0; row < kPanelRows; ++row) {
        for (int64_t i = 0; i < k; ++i) {
            Element element = {};
            if (row < rows) {
                __builtin_memcpy(&element, source + (row * k + i) * static_cast<int64_t>(sizeof element),
                                 sizeof element);
            }
            packed[i * kPanelRows + row] = element;
        }
    }
}

void put_codes(const BlockQ8_0& block, int64_t row, UnitQ8_0* unit) {
    for (int64_t i = 0; i < kQuantBlock; ++i) {
        unit->code[i][row] = block.code[i];
    }
}

void put_codes(const BlockQ4_0& block, int64_t row, UnitQ4_0* unit) {
    for (int64_t i = 0; i < kQuantBlock / 2; ++i) {
        unit->codes[i][row] = block.codes[i];
    }
}

template <class Block, class Unit>
void pack_quantised(const uint8_t* source, int64_t rows, int64_t k, Unit* packed) {
    const int64_t blocks = k / kQuantBlock;
    for (int64_t row = 0; row < kPanelRows; ++row) {
        for (int64_t b = 0; b < blocks; ++b) {
            Block block = {};
            if (row < rows) {
                __builtin_memcpy(&block, source + (row * blocks + b) * static_cast<int64_t>(sizeof block),
                                 sizeof block);
            }
            packed[b].scale[row] = block.scale;
            put_codes(block, row, &packed[b]);
        }
    }
}

void pack_panel(const uint8_t* source, int64_t rows, int64_t k, UnitQ8_0* packed) {
    pack_quantised<BlockQ8_0>(source, rows, k, packed);
}

void pack_panel(const uint8_t* source, int64_t rows, int64_t k, UnitQ4_0* packed) {
    pack_quantised<BlockQ4_0>(source, rows, k, packed);
}

int64_t file_bytes(const float*, int64_t k) {
    return k * 4;
}
int64_t file_bytes(const Half*, int64_t k) {
    return k * 2;
}
int64_t file_bytes(const BFloat*, int64_t k) {
    return k * 2;
}
int64_t file_bytes(const UnitQ8_0*, int64_t k) {
    return k / kQuantBlock * static_cast<int64_t>(sizeof(BlockQ8_0));
}
int64_t file_bytes(const UnitQ4_0*, int64_t k) {
    return k / kQuantBlock * static_cast<int64_t>(sizeof(BlockQ4_0));
}

template <class Unit>
Unit* writable_panel(const Unit* type, void* packed, int64_t panel, int64_t k) {
    return static_cast<Unit*>(packed) + panel * panel_steps(type, k);
}

/* Row `row` of a panel as k floats. */
template <class Element>
void unpack_row(const Element* panel, int64_t row, int64_t k, float* y) {
    for (int64_t i = 0; i < k; ++i) {
        y[i] = to_float(panel[i * kPanelRows + row]);
    }
}

void unpack_row(const UnitQ8_0* panel, int64_t row, int64_t k, float* y) {
    for (int64_t b = 0; b < k / kQuantBlock; ++b) {
        const float scale = to_float(panel[b].scale[row]);
        for (int64_t i = 0; i < kQuantBlock; ++i) {
            y[b * kQuantBlock + i] = static_cast<float>(panel[b].code[i][row]) * scale;
        }
    }
}

void unpack_row(const UnitQ4_0* panel, int64_t row, int64_t k, float* y) {
    constexpr int64_t half = kQuantBlock / 2;
    for (int64_t b = 0; b < k / kQuantBlock; ++b) {
        const float scale = to_float(panel[b].scale[row]);
        for (int64_t i = 0; i < half; ++i) {
            const int codes = panel[b].codes[i][row];
            y[b * kQuantBlock + i] = static_cast<float>((codes & 15) - 8) * scale;
            y[b * kQuantBlock + half + i] = static_cast<float>((codes >> 4) - 8) * scale;
        }
    }
}

}  // namespace

int64_t weight_bytes(int32_t dtype, int64_t n, int64_t k) {
    int64_t bytes = 0;
    with_weight_type(dtype, [&](const auto* type) {
        bytes = panel_count(n) * panel_steps(type, k) * static_cast<int64_t>(sizeof *type);
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
