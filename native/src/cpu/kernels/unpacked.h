/*
 * Matmul of many rows with weights of integer codes, where unpacking a code costs as much as a few products: a stretch
 * of a panel is unpacked once, into the L1 cache, and then multiplied with all rows.
 *
 * How many products a lane of a sum holds: a pair of int16, each of its own half, 32 products with a code up to 15, as
 * 16 * 15 * 127 = 30480, or 16 with a code up to 63 that is 32 above its value, as these are at most
 * 8 * 32 * 127 = 32512 when all are added, whatever happened on the way; an int32 any block.
 */
#ifndef TACHO_CPU_KERNELS_UNPACKED_H
#define TACHO_CPU_KERNELS_UNPACKED_H

#include "matmul.h"

#if TACHO_UNPACKS_WEIGHTS

#include "code_block.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* Rows that go over a stretch, and the bytes of activations that they may have, so that these stay in the L2 cache;
 * with fewer than kLeastRows unpacking costs too much. */
constexpr int64_t kBatchRows = 96;
constexpr int64_t kLeastRows = 24;
constexpr int64_t kBatchBytes = 512 << 10;

/*
 * A block of 32 k of a panel. Measured: kFrom is the number of rows from which unpacking pays, kBlocks how many blocks
 * a stretch has, kRows how many rows a tile.
 */
template <class Unit>
struct Unpacked;

/* The sums of R rows and a panel, [row][16], += a block: ints * scale of the weights * scale of the activations. */
template <bool pairs, class Block, int R>
TACHO_INLINE void add_scaled(float* sums, const Ints (&ints)[R], const float* scale, const Block* const (&x)[R]) {
    stay_in_memory();
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        const Vec whole = to_floats(pairs ? finish_unsigned(ints[r]) : ints[r]);
        float* sum = sums + r * kPanelRows;
        store(sum, fma(whole, mul(load(scale), broadcast(x[r]->scale)), load(sum)));
    }
}

/*
 * Where sums and products of int16 share the ports, a sum costs less: of four k,
 *
 *   (w0 + a2) (w2 + a0) + (w1 + a3) (w3 + a1) = w0 a0 + w1 a1 + w2 a2 + w3 a3 + (w0 w2 + w1 w3) + (a0 a2 + a1 a3)
 *
 * takes half the products, and what is too much is known before: of the weights once a stretch, of the activations once
 * a row. Exact: factors are below 2^8 in size.
 */
template <>
struct Unpacked<UnitQ8_0> {
    static constexpr int64_t kFrom = 11;
    static constexpr int64_t kBlocks = 16;
    static constexpr int kRows = 4;

    alignas(64) uint8_t codes[2 * kQuantBlock * kPanelRows];
    alignas(64) uint8_t start[4 * kPanelRows]; /* int32, -sum w[k] w[k + 2] as of the activations */
    float scale[kPanelRows];

    TACHO_INLINE void set(const UnitQ8_0* panel, int64_t block) {
        const UnitQ8_0& unit = panel[block / 2];
        Ints sum = zero_ints();
        TACHO_UNROLL for (int64_t k = 0; k < kQuantBlock; k += 4) {
            const Ints first = load_wide(unit.codes[block % 2] + k * kPanelRows);
            const Ints second = load_wide(unit.codes[block % 2] + (k + 2) * kPanelRows);
            store_ints(codes + k * 2 * kPanelRows, first);
            store_ints(codes + (k + 2) * 2 * kPanelRows, second);
            sum = subtract_products(sum, first, second);
        }
        store_ints(start, sum);
        store(scale, load(unit.scale[block % 2]));
    }

    template <int R>
    TACHO_INLINE void multiply(const WideBlock* const (&x)[R], float* sums) const {
        Ints ints[R];
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            ints[r] = add_ints(broadcast_int(&x[r]->start_crossed), load_codes(start));
        }
        TACHO_UNROLL for (int64_t k = 0; k < kQuantBlock; k += 4) {
            const Ints first = load_codes(codes + k * 2 * kPanelRows);
            const Ints second = load_codes(codes + (k + 2) * 2 * kPanelRows);
            TACHO_UNROLL for (int r = 0; r < R; ++r) {
                dot_crossed(ints[r], first, second, x[r]->codes + k);
            }
        }
        add_scaled<false>(sums, ints, scale, x);
    }
};

/*
 * ints = codes of 4 * steps k times activations from k = from. first(sum, codes, x) gives a row the sum of the first four
 * k, with what the sum starts at.
 */
template <int steps, int R, class First>
TACHO_INLINE void sum_products(Ints (&ints)[R], const uint8_t* codes, const ActivationBlock* const (&x)[R],
                               int64_t from, First first) {
    const Ints start = load_codes(codes);
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        first(ints[r], start, *x[r]);
    }
    TACHO_UNROLL for (int64_t i = 1; i < steps; ++i) {
        const Ints four = load_codes(codes + i * 64);
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            dot_unsigned(ints[r], four, x[r]->codes + from + i * 4);
        }
    }
}

template <>
struct Unpacked<UnitQ4_0> : CodeBlock<UnitQ4_0> {
    static constexpr int64_t kFrom = 24;
    static constexpr int64_t kBlocks = 32;
    static constexpr int kRows = 6;

    template <int R>
    TACHO_INLINE void multiply(const ActivationBlock* const (&x)[R], float* sums) const {
        Ints ints[R];
        sum_products<8>(ints, codes, x, 0, [](Ints& sum, const Ints& four, const ActivationBlock& block) {
            first_dot_unsigned(sum, four, block.codes, &block.start_8);
        });
        add_scaled<true>(sums, ints, scale[0], x);
    }
};

template <>
struct Unpacked<UnitQ4_K> : CodeBlock<UnitQ4_K> {
    static constexpr int64_t kFrom = 9;
    static constexpr int64_t kBlocks = 32;
    static constexpr int kRows = 6;

    template <int R>
    TACHO_INLINE void multiply(const ActivationBlock* const (&x)[R], float* sums) const {
        Ints ints[R];
        sum_products<8>(ints, codes, x, 0, [](Ints& sum, const Ints& four, const ActivationBlock& block) {
            first_dot_unsigned(sum, four, block.codes);
        });
        stay_in_memory();
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            const Vec whole = to_floats(finish_unsigned(ints[r]));
            float* sum = sums + r * kPanelRows;
            const Vec less = fma(load(min), broadcast(x[r]->negative_sum), load(sum));
            store(sum, fma(whole, mul(load(scale[0]), broadcast(x[r]->scale)), less));
        }
    }
};

template <>
struct Unpacked<UnitQ6_K> : CodeBlock<UnitQ6_K> {
    static constexpr int64_t kFrom = 5;
    static constexpr int64_t kBlocks = 32;
    static constexpr int kRows = 6;

    template <int R>
    TACHO_INLINE void multiply(const ActivationBlock* const (&x)[R], float* sums) const {
        for (int half = 0; half < 2; ++half) {
            Ints ints[R];
            sum_products<4>(ints, codes + half * 256, x, half * 16,
                            [half](Ints& sum, const Ints& four, const ActivationBlock& block) {
                                first_dot_unsigned(sum, four, block.codes + half * 16, &block.start_32[half]);
                            });
            add_scaled<true>(sums, ints, scale[half], x);
        }
    }
};

/* Rows [row, row + R) against an unpacked stretch. */
template <class Unit>
struct StretchTile {
    const tacho_matmul_params& p;
    const Unpacked<Unit>* w;
    int64_t first;
    int64_t blocks;
    int64_t row;
    float* sums;

    template <int R>
    TACHO_APART void run() const {
        using Block = BlockFor<Unit>;
        const Block* x[R];
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            x[r] = blocks_of(static_cast<const Block*>(nullptr), x_row(p, row + r), p.k) + first;
        }
        const Unpacked<Unit>* const end = w + blocks;
        float* const to = sums;
        for (const Unpacked<Unit>* block = w; block < end; ++block) {
            block->multiply(x, to);
            TACHO_UNROLL for (int r = 0; r < R; ++r) {
                ++x[r];
            }
        }
    }
};

/* Rows [row, row + rows) against a panel. */
template <class Unit>
void multiply_batch(const tacho_matmul_params& p, int64_t row, int64_t rows, int64_t panel) {
    constexpr int most = Unpacked<Unit>::kRows;
    constexpr int64_t most_blocks = Unpacked<Unit>::kBlocks;
    Unpacked<Unit> stretch[most_blocks];
    alignas(64) float sums[kBatchRows * kPanelRows];
    for (int64_t i = 0; i < rows; ++i) {
        store(sums + i * kPanelRows, zero());
    }
    const Unit* w = panel_at(static_cast<const Unit*>(nullptr), p.w, panel, p.k);
    const int64_t blocks = p.k / kQuantBlock;
    const int64_t tiles = (rows + most - 1) / most;
    for (int64_t first = 0; first < blocks; first += most_blocks) {
        const int64_t count = smaller(most_blocks, blocks - first);
        for (int64_t i = 0; i < count; ++i) {
            stretch[i].set(w, first + i);
        }
        for (int64_t t = 0; t < tiles; ++t) {
            const int64_t at = t * rows / tiles;
            const StretchTile<Unit> tile{p, stretch, first, count, row + at, sums + at * kPanelRows};
            with_rows<most>((t + 1) * rows / tiles - at, tile);
        }
    }
    for (int64_t i = 0; i < rows; ++i) {
        put_result(p, row + i, panel, load(sums + i * kPanelRows));
    }
}

/* All rows against panels [begin, end), in batches as even as possible. */
template <class Unit>
void multiply_unpacked(const tacho_matmul_params& p, int64_t begin, int64_t end) {
    const int64_t row_bytes = p.k / kQuantBlock * static_cast<int64_t>(sizeof(BlockFor<Unit>));
    const int64_t most = smaller(kBatchRows, larger(kLeastRows, kBatchBytes / row_bytes));
    const int64_t batches = (p.m + most - 1) / most;
    for (int64_t b = 0; b < batches; ++b) {
        const int64_t row = b * p.m / batches;
        for (int64_t panel = begin; panel < end; ++panel) {
            multiply_batch<Unit>(p, row, (b + 1) * p.m / batches - row, panel);
        }
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif

#endif
