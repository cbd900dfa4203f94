/*
 * Matmul of many rows with weights of integer codes by products of whole tiles (AMX): 16 rows of activations times a part
 * of a block of a panel, 16 x 16 sums of int32, which are then scaled and added to the floats as everywhere else, so the
 * bits are those of matmul_int8.cpp.
 *
 *   for each group of panels, for each block of rows, for each run of k
 *     the run of the panels is unpacked, once for all rows of the block
 *     for each 16 rows: their codes and scales are gathered, once for all panels of the group
 *       for each panel: sums of tiles, and, while the next ones are made, their floats
 */
#ifndef TACHO_CPU_KERNELS_TILED_CODES_H
#define TACHO_CPU_KERNELS_TILED_CODES_H

#include "matmul.h"

#if TACHO_TILE_PRODUCTS

#include "code_block.h"
#include "tiles.h"

#define TACHO_UNROLL_ROWS _Pragma("GCC unroll 16")

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* Blocks of a run, panels of a group, rows of a block: what they take lies on the stack, some 220 KiB. */
constexpr int64_t kTiledBlocks = 8;
constexpr int64_t kTiledPanels = 16;
constexpr int64_t kTiledRows = 128;

/* Rows from which on tiles win against sums in registers. */
constexpr int64_t kLeastTiledRows = 48;

/* Tiles of rows that go over a panel one after the other, while it is in the nearest cache. */
constexpr int64_t kSideBySide = 2;

/* Parts whose sums are made together, each in a register of its own. */
constexpr int64_t kTogether = 4;

template <>
struct CodeBlock<UnitQ8_0> : CodeBytes<1> {
    TACHO_INLINE void set(const UnitQ8_0* panel, int64_t block) {
        const UnitQ8_0& unit = panel[block / 2];
        for (int64_t at = 0; at < static_cast<int64_t>(sizeof codes); at += 64) {
            store_ints(codes + at, code_bytes<128>(load_codes(unit.codes[block % 2] + at)));
        }
        store(scale[0], load(unit.scale[block % 2]));
    }
};

/* A run of up to 16 rows of activations, side by side; rows that are not there are zeros. */
struct GatheredRows {
    alignas(64) int8_t codes[kTiledBlocks][kTileRows][kActivationBlock];
    alignas(64) float scale[kTiledBlocks][kTileRows];
    alignas(64) float negative_sum[kTiledBlocks][kTileRows];

    template <bool sums>
    TACHO_INLINE void gather(const tacho_matmul_params& p, int64_t row, int64_t rows, int64_t first, int64_t blocks) {
        for (int64_t r = 0; r < rows; ++r) {
            const ActivationBlock* from = static_cast<const ActivationBlock*>(x_row(p, row + r)) + first;
            for (int64_t b = 0; b < blocks; ++b) {
                put<sums>(b, r, from[b]);
            }
        }
        for (int64_t r = rows; r < kTileRows; ++r) {
            for (int64_t b = 0; b < blocks; ++b) {
                put<sums>(b, r, ActivationBlock{});
            }
        }
    }

  private:
    template <bool sums>
    TACHO_INLINE void put(int64_t b, int64_t r, const ActivationBlock& block) {
        __builtin_memcpy(codes[b][r], block.codes, kActivationBlock);
        scale[b][r] = block.scale;
        if (sums) {
            negative_sum[b][r] = block.negative_sum;
        }
    }
};

template <class Unit>
class TiledCodes {
  public:
    /* All rows against panels [begin, end). */
    static void multiply(const tacho_matmul_params& p, int64_t begin, int64_t end) {
        Tiles tiles;
        tiles.shape(shapes());
        TiledCodes scratch;
        const int64_t blocks = (p.m + kTiledRows - 1) / kTiledRows;
        for (int64_t panel = begin; panel < end; panel += kTiledPanels) {
            const int64_t panels = smaller(kTiledPanels, end - panel);
            for (int64_t b = 0; b < blocks; ++b) {
                const int64_t row = b * p.m / blocks;
                scratch.multiply_group(p, row, (b + 1) * p.m / blocks - row, panel, panels);
            }
        }
    }

  private:
    using Block = CodeBlock<Unit>;
    static constexpr int kParts = Block::kParts;
    static constexpr int64_t kPartElements = kQuantBlock / kParts;
    using Sums = int32_t[kTileRows][kPanelRows];

    static TileShapes shapes() {
        TileShapes shapes;
        for (int sums = 0; sums < 4; ++sums) {
            shapes.set(sums, kTileRows, 64);
        }
        for (int pair = 0; pair < 2; ++pair) {
            shapes.set(4 + pair, kTileRows, kPartElements);
            shapes.set(6 + pair, kPartElements / 4, 64);
        }
        return shapes;
    }

    void multiply_group(const tacho_matmul_params& p, int64_t row, int64_t rows, int64_t panel, int64_t panels) {
        const int64_t count = p.k / kQuantBlock;
        for (int64_t first = 0; first < count; first += kTiledBlocks) {
            const int64_t blocks = smaller(kTiledBlocks, count - first);
            for (int64_t i = 0; i < panels; ++i) {
                const Unit* w = panel_at(static_cast<const Unit*>(nullptr), p.w, panel + i, p.k);
                for (int64_t b = 0; b < blocks; ++b) {
                    weights_[i][b].set(w, first + b);
                }
            }
            for (int64_t at = 0; at < rows; at += kSideBySide * kTileRows) {
                const int64_t tiles = smaller(kSideBySide, (rows - at + kTileRows - 1) / kTileRows);
                for (int64_t t = 0; t < tiles; ++t) {
                    const int64_t from = at + t * kTileRows;
                    x_[t].template gather<Block::kHasMin>(p, row + from, smaller(kTileRows, rows - from), first, blocks);
                }
                for (int64_t i = 0; i < panels; ++i) {
                    for (int64_t t = 0; t < tiles; ++t) {
                        multiply_run(weights_[i], x_[t], blocks, first == 0, totals_[i][at / kTileRows + t]);
                    }
                }
            }
        }
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t i = 0; i < panels; ++i) {
                put_result(p, row + r, panel + i, load(totals_[i][r / kTileRows][r % kTileRows]));
            }
        }
    }

    /* totals += the products of a run of 16 rows and a panel. */
    TACHO_APART void multiply_run(const Block* w, const GatheredRows& x, int64_t blocks, bool starts, float (&totals)[kTileRows][kPanelRows]) {
        Vec sum[kTileRows];
        TACHO_UNROLL_ROWS for (int r = 0; r < kTileRows; ++r) {
            sum[r] = starts ? zero() : load(totals[r]);
        }
        const int64_t parts = blocks * kParts;
        multiply_parts(w, x, 0, 0);
        for (int64_t part = 0; part < parts; part += kTogether) {
            const int64_t half = part / kTogether % 2;
            if (part + kTogether < parts) {
                multiply_parts(w, x, part + kTogether, 1 - half);
            }
            const int64_t here = smaller(kTogether, parts - part);
            for (int64_t i = 0; i < here; ++i) {
                add_scaled(sum, ints_[half][i], x, w[(part + i) / kParts], (part + i) / kParts, (part + i) % kParts);
            }
        }
        TACHO_UNROLL_ROWS for (int r = 0; r < kTileRows; ++r) {
            store(totals[r], sum[r]);
        }
    }

    /* The integer sums of kTogether parts; of those past the end of a run nobody reads them. */
    TACHO_INLINE void multiply_parts(const Block* w, const GatheredRows& x, int64_t part, int64_t half) {
        multiply_part<0, 4, 6>(w, x, part, ints_[half][0]);
        multiply_part<1, 5, 7>(w, x, part + 1, ints_[half][1]);
        multiply_part<2, 4, 6>(w, x, part + 2, ints_[half][2]);
        multiply_part<3, 5, 7>(w, x, part + 3, ints_[half][3]);
    }
    template <int sums, int a, int b>
    TACHO_INLINE void multiply_part(const Block* w, const GatheredRows& x, int64_t part, Sums& to) {
        const int64_t block = part / kParts;
        const int64_t k = part % kParts * kPartElements;
        tile_load<b>(w[block].codes + k * kPanelRows, 64);
        tile_load<a>(x.codes[block][0] + k, kActivationBlock);
        tile_zero<sums>();
        tile_dot_int8<sums, a, b>();
        tile_store<sums>(to, 64);
    }

    static TACHO_INLINE void add_scaled(Vec (&sum)[kTileRows], const Sums& ints, const GatheredRows& x, const Block& w,
                                        int64_t block, int64_t part) {
        const Vec scale = load(w.scale[part]);
        if constexpr (Block::kHasMin) {
            const Vec min = load(w.min);
            TACHO_UNROLL_ROWS for (int r = 0; r < kTileRows; ++r) {
                sum[r] = fma(min, broadcast(x.negative_sum[block][r]), sum[r]);
            }
        }
        TACHO_UNROLL_ROWS for (int r = 0; r < kTileRows; ++r) {
            const Vec whole = to_floats(load_codes(reinterpret_cast<const uint8_t*>(ints[r])));
            sum[r] = fma(whole, mul(scale, broadcast(x.scale[block][r])), sum[r]);
        }
    }

    GatheredRows x_[kSideBySide];
    alignas(64) Sums ints_[2][kTogether];
    Block weights_[kTiledPanels][kTiledBlocks];
    alignas(64) float totals_[kTiledPanels][kTiledRows / kTileRows][kTileRows][kPanelRows];
};

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif

#endif
