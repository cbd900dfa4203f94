/*
 * Matmul with weights of integer codes. Within a block of 32 k (16 for Q6_K) codes are multiplied and summed as
 * integers, exactly; the block's sum is then scaled and added to the output's float sum, block by block in the order
 * of k.
 */
#include "matmul.h"
#include "tiled_codes.h"
#include "unpacked.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

/* The float sums of a tile, in registers or in the L1 cache. */
template <int R, int P, bool in_memory>
struct Sums {
    Vec sum[R][P];

    TACHO_INLINE void reset() { clear(sum); }
    TACHO_INLINE Vec get(int r, int i) const { return sum[r][i]; }
    TACHO_INLINE void set(int r, int i, Vec v) { sum[r][i] = v; }
    TACHO_INLINE void settle() {}
};

template <int R, int P>
struct Sums<R, P, true> {
    alignas(64) float sum[R][P][16];

    TACHO_INLINE void reset() {
        for (int r = 0; r < R; ++r) {
            for (int i = 0; i < P; ++i) {
                store(sum[r][i], zero());
            }
        }
    }
    TACHO_INLINE Vec get(int r, int i) const { return load(sum[r][i]); }
    TACHO_INLINE void set(int r, int i, Vec v) { store(sum[r][i], v); }
    TACHO_INLINE void settle() { stay_in_memory(); }
};

/* What a type's block needs: R blocks of activations, P places in panels. */
template <class Block, int R, int P>
struct Tile {
    const Block* x[R];
    Sums<R, P, kSumsInMemory> sums;
    Ints ints[R][P];

    /* ints = -z sum a of every row. */
    template <class Start>
    TACHO_INLINE void begin(Start start) {
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                ints[r][i] = broadcast_int(start(*x[r]));
            }
        }
    }
    TACHO_INLINE void begin_at_zero() {
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                ints[r][i] = zero_ints();
            }
        }
    }

    /* ints += codes times the four activations from k. */
    TACHO_INLINE void multiply(const Ints (&codes)[P], int64_t k) {
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                dot_unsigned(ints[r][i], codes[i], x[r]->codes + k);
            }
        }
    }

    /* ints += a block of nibbles times its 32 activations. */
    TACHO_INLINE void multiply_nibbles(const uint8_t* const (&block)[P]) {
        TACHO_UNROLL for (int j = 0; j < 4; ++j) {
            Ints low[P];
            Ints high[P];
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                const Ints bytes = load_codes(block[i] + j * 64);
                low[i] = low_nibbles(bytes);
                high[i] = high_nibbles(bytes);
            }
            multiply(low, 8 * j);
            multiply(high, 8 * j + 4);
        }
    }

    /* sums += ints * scale of the weights * scale of the activations. */
    template <bool unsigned_products>
    TACHO_INLINE void add_scaled(const Vec (&scale)[P]) {
        sums.settle();
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            const Vec x_scale = broadcast(x[r]->scale);
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                const Vec whole = to_floats(unsigned_products ? finish_unsigned(ints[r][i]) : ints[r][i]);
                sums.set(r, i, fma(whole, mul(scale[i], x_scale), sums.get(r, i)));
            }
        }
    }

    /* sums -= min of the weights * scaled sum of the activations. */
    TACHO_INLINE void subtract_mins(const Vec (&min)[P]) {
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            const Vec x_sum = broadcast(x[r]->negative_sum);
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                sums.set(r, i, fma(min[i], x_sum, sums.get(r, i)));
            }
        }
    }

    TACHO_INLINE void advance() {
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            ++x[r];
        }
    }
};

/* ---- one block of each type -------------------------------------------------------------------------------------- */

/* Products of a block of Q8_0, as int16 and as bytes. */
template <int R, int P>
TACHO_INLINE void multiply_codes(Tile<WideBlock, R, P>& tile, const uint8_t* const (&block)[P]) {
    _Pragma("GCC unroll 16") for (int k = 0; k < kQuantBlock; k += 2) {
        Ints codes[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            codes[i] = load_wide(block[i] + k * kPanelRows);
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                if (k == 0) {
                    first_dot_wide(tile.ints[r][i], codes[i], tile.x[r]->codes);
                } else {
                    dot_wide(tile.ints[r][i], codes[i], tile.x[r]->codes + k);
                }
            }
        }
    }
}
template <int R, int P>
TACHO_INLINE void multiply_codes(Tile<ActivationBlock, R, P>& tile, const uint8_t* const (&block)[P]) {
    tile.begin([](const ActivationBlock& x) { return &x.start_128; });
    TACHO_UNROLL for (int k = 0; k < kQuantBlock; k += 4) {
        Ints codes[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            codes[i] = load_codes(block[i] + k * kPanelRows);
        }
        tile.multiply(codes, k);
    }
}

template <class Block, int R, int P>
TACHO_INLINE void multiply_block(Tile<Block, R, P>& tile, const UnitQ8_0* const (&w)[P], int64_t block) {
    const int64_t half = block % 2;
    const uint8_t* codes[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        codes[i] = w[i][block / 2].codes[half];
    }
    multiply_codes(tile, codes);
    Vec scale[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        scale[i] = load(w[i][block / 2].scale[half]);
    }
    tile.template add_scaled<!kWideProducts>(scale);
}

template <int R, int P>
TACHO_INLINE void multiply_block(Tile<ActivationBlock, R, P>& tile, const UnitQ4_0* const (&w)[P], int64_t block) {
    const int64_t half = block % 2;
    const uint8_t* codes[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        codes[i] = w[i][block / 2].codes[half];
    }
    tile.begin([](const ActivationBlock& x) { return &x.start_8; });
    tile.multiply_nibbles(codes);
    Vec scale[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        scale[i] = load(w[i][block / 2].scale[half]);
    }
    tile.template add_scaled<true>(scale);
}

template <int R, int P>
TACHO_INLINE void multiply_block(Tile<ActivationBlock, R, P>& tile, const UnitQ4_K* const (&w)[P], int64_t block) {
    const int64_t sub = block % 8;
    const uint8_t* codes[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        codes[i] = w[i][block / 8].codes[sub];
    }
    tile.begin_at_zero();
    tile.multiply_nibbles(codes);
    Vec scale[P];
    Vec min[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        const UnitQ4_K& unit = w[i][block / 8];
        scale[i] = mul(load(unit.scale), uint8_floats(unit.sub[sub].scales()));
        min[i] = mul(load(unit.min), uint8_floats(unit.sub[sub].mins()));
    }
    tile.subtract_mins(min);
    tile.template add_scaled<true>(scale);
}

/* The two halves of a block have scales of their own. */
template <int half, int R, int P>
TACHO_INLINE void multiply_half(Tile<ActivationBlock, R, P>& tile, const UnitQ6_K* const (&w)[P], int64_t block) {
    const int64_t sub = block % 8;
    tile.begin([](const ActivationBlock& x) { return &x.start_32[half]; });
    Ints high[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        high[i] = load_codes(w[i][block / 8].part[sub / 2].block[sub % 2].high + half * 64);
    }
    TACHO_UNROLL for (int j = 0; j < 2; ++j) {
        Ints first[P];
        Ints second[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            const Ints bytes = load_codes(w[i][block / 8].part[sub / 2].block[sub % 2].codes + (half * 2 + j) * 64);
            first[i] = j == 0 ? with_high_bits<0>(low_nibbles(bytes), high[i])
                              : with_high_bits<4>(low_nibbles(bytes), high[i]);
            second[i] = j == 0 ? with_high_bits<2>(high_nibbles(bytes), high[i])
                               : with_high_bits<6>(high_nibbles(bytes), high[i]);
        }
        tile.multiply(first, half * 16 + j * 8);
        tile.multiply(second, half * 16 + j * 8 + 4);
    }
    Vec scale[P];
    TACHO_UNROLL for (int i = 0; i < P; ++i) {
        const UnitQ6_K& unit = w[i][block / 8];
        scale[i] = mul(load(unit.scale), load_int8(unit.part[sub / 2].sub_scale[sub % 2 * 2 + half]));
    }
    tile.template add_scaled<true>(scale);
}

template <int R, int P>
TACHO_INLINE void multiply_block(Tile<ActivationBlock, R, P>& tile, const UnitQ6_K* const (&w)[P], int64_t block) {
    multiply_half<0>(tile, w, block);
    multiply_half<1>(tile, w, block);
}

/* ---- a tile of rows and panels ----------------------------------------------------------------------------------- */

/*
 * How far ahead a tile of so many rows asks for its weights, in bytes; 0: not at all. With one row or few of a type that
 * is cheap to multiply, the loop runs as fast as memory, and requests only get into the way of the processor's own.
 */
constexpr int64_t bytes_ahead(const UnitQ8_0*, int rows) {
    return kFollowsStreams && rows <= 3 ? 0 : 2 * sizeof(UnitQ8_0);
}
constexpr int64_t bytes_ahead(const UnitQ4_0*, int rows) {
    return !kFollowsStreams ? 2 * sizeof(UnitQ4_0) : rows == 1 ? 0 : 4096;
}
constexpr int64_t bytes_ahead(const UnitQ4_K*, int) {
    return kFollowsStreams ? 4096 : sizeof(UnitQ4_K);
}
constexpr int64_t bytes_ahead(const UnitQ6_K*, int) {
    return kFollowsStreams ? 2048 : sizeof(UnitQ6_K);
}

template <class Unit>
struct IntTile {
    static constexpr int kRows = kReadsWide<Unit> ? kWideRows : kIntRows;
    static constexpr int kFewRows = kRows > kFewIntRows ? kRows : kFewIntRows;

    /* Few rows wait for memory, which gives most from one place at a time. */
    static constexpr int panels(int, bool few) { return few ? 1 : kIntPanels; }

    template <int R, int P>
    static void run(const tacho_matmul_params& p, int64_t row, int64_t panel, bool first) {
        const Unit* w[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = panel_at(static_cast<const Unit*>(nullptr), p.w, panel + i, p.k);
        }
        using Block = BlockFor<Unit>;
        Tile<Block, R, P> tile;
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            tile.x[r] = blocks_of(static_cast<const Block*>(nullptr), x_row(p, row + r), p.k);
        }
        tile.sums.reset();
        constexpr int64_t by_type = bytes_ahead(static_cast<const Unit*>(nullptr), R);
        constexpr auto ahead = static_cast<int>(kWeightsAhead != 0 ? kWeightsAhead : by_type);
        constexpr int blocks_of_unit = Unit::kElements / kQuantBlock;
        const int64_t blocks = p.k / kQuantBlock;
        for (int64_t block = 0; block < blocks; ++block) {
            if (ahead != 0 && first) {
                fetch(w, block, Count<ahead>{}, Count<blocks_of_unit>{});
            }
            multiply_block(tile, w, block);
            tile.advance();
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                put_result(p, row + r, panel + i, tile.sums.get(r, i));
            }
        }
    }

    /* As much as a block reads, some bytes ahead. */
    template <int P, class Ahead, class Blocks>
    TACHO_INLINE static void fetch(const Unit* const (&w)[P], int64_t block, Ahead, Blocks) {
        constexpr int64_t part = static_cast<int64_t>(sizeof(Unit)) / Blocks::value;
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            const auto* from = reinterpret_cast<const uint8_t*>(w[i] + block / Blocks::value) +
                               block % Blocks::value * part + Ahead::value;
            TACHO_UNROLL for (int64_t at = 0; at < part; at += 64) {
                __builtin_prefetch(from + at);
            }
        }
    }
};

template <class Unit>
void multiply(const tacho_matmul_params& p, int64_t begin, int64_t end) {
#if TACHO_TILE_PRODUCTS
    if (p.m >= kLeastTiledRows) {
        return TiledCodes<Unit>::multiply(p, begin, end);
    }
#elif TACHO_UNPACKS_WEIGHTS
    if (p.m >= Unpacked<Unit>::kFrom) {
        return multiply_unpacked<Unit>(p, begin, end);
    }
#endif
    multiply_tiles<IntTile<Unit>>(p, begin, end);
}

}  // namespace

void matmul_int8(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    switch (p.dtype) {
        case TACHO_DTYPE_Q8_0:
            return multiply<UnitQ8_0>(p, begin, end);
        case TACHO_DTYPE_Q4_0:
            return multiply<UnitQ4_0>(p, begin, end);
        case TACHO_DTYPE_Q4_K:
            return multiply<UnitQ4_K>(p, begin, end);
        default:
            return multiply<UnitQ6_K>(p, begin, end);
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
