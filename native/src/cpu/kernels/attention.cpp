/*
 * Attention over the paged KV cache.
 *
 * The rows of an item (its queries times the query heads of its kv head) are taken in groups of kGroupRows. A group
 * walks the keys in chunks of 64 that begin at multiples of 64 of the absolute position, and a chunk's K and V stay in
 * the L1 cache while all tiles of the group pass. K of a block, [head_dim][16 tokens], and V of a block,
 * [16 tokens][head_dim], are the panels of tile.h as they lie.
 *
 * Within a chunk a row meets only the keys that it sees: scores of others are masked, their V is never multiplied (it
 * may be NaN). A row's arithmetic follows from its own position and the chunk borders alone, so neither the items nor
 * the other rows of the batch change its bits.
 *
 *   scratch   | out [kGroupRows][head_dim rounded up to 16] | highest score [kGroupRows] | sum [kGroupRows] |
 */
#include "core/kv_layout.h"
#include "math.h"
#include "tile.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

constexpr int64_t kGroupRows = 48;
constexpr int64_t kChunkKeys = 64;

TACHO_INLINE int64_t padded(int64_t head_dim) {
    return (head_dim + 15) / 16 * 16;
}

/* Keys [first, last) of a sequence. */
struct Keys {
    int64_t first;
    int64_t last;
};

/* One kv head of one sequence, and where its queries stand. */
template <class Element>
struct Head {
    const tacho_attention_params& p;
    const int32_t* blocks; /* of the sequence */
    int64_t kv_head;
    int64_t group;     /* query heads */
    int64_t first_row; /* of the sequence's first query in q and out */
    int64_t base;      /* position of that query */

    const Element* panel(const void* cache, int64_t block) const {
        return static_cast<const Element*>(cache) + kv_panel(blocks[block], p.num_kv_heads, kv_head, p.head_dim);
    }

    /* Offset of a row's head in q or out; rows are counted [query][head]. */
    int64_t offset(int64_t row, int64_t ld) const {
        return (first_row + row / group) * ld + (kv_head * group + row % group) * p.head_dim;
    }

    /* The keys that a row sees. */
    Keys visible(int64_t row) const {
        const int64_t position = base + row / group;
        return {p.window > 0 ? larger(0, position - p.window + 1) : 0, position + 1};
    }
};

/* What a group of rows has gathered so far. */
struct State {
    float* out;     /* [rows][stride] */
    float* highest; /* [rows] */
    float* sum;     /* [rows], of exp(score - highest) */
    int64_t stride;
};

/* scores [R][kChunkKeys] of blocks [first, last) of a chunk. */
template <int R, class Element>
TACHO_INLINE void score_blocks(const Head<Element>& head, int64_t chunk, int64_t first, int64_t last,
                               const float* const (&q)[R], float (*scores)[kChunkKeys]) {
    const int64_t chunk_block = chunk / kBlockTokens;
    const auto score = [&](auto panels, int64_t block) {
        constexpr int P = decltype(panels)::value;
        const Element* k[P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            k[i] = head.panel(head.p.k_cache, chunk_block + block + i);
        }
        Vec sum[R][P];
        clear(sum);
        multiply(sum, k, kBlockTokens, q, 0, head.p.head_dim, WholePanel{});
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                store(scores[r] + (block + i) * kBlockTokens, sum[r][i]);
            }
        }
    };
    constexpr int wide = tile_panels(R);
    int64_t block = first;
    for (; block + wide <= last; block += wide) {
        score(Count<wide>{}, block);
    }
    for (; block < last; ++block) {
        score(Count<1>{}, block);
    }
}

/* Turns the scores of the keys [keys.first, keys.last) of a chunk into exp(score - highest), and brings the row's state
 * to the new highest score. */
TACHO_INLINE void soften(const tacho_attention_params& p, Keys keys, int64_t row, const State& state, float* scores) {
    const int64_t first = keys.first / kBlockTokens;
    const int64_t last = (keys.last + kBlockTokens - 1) / kBlockTokens;
    Vec top = broadcast(-__builtin_inff());
    for (int64_t b = first; b < last; ++b) {
        float* at = scores + b * kBlockTokens;
        Vec s = mul(load(at), broadcast(p.scale));
        if (p.softcap > 0) {
            s = mul(tanh(div(s, broadcast(p.softcap))), broadcast(p.softcap));
        }
        s = keep_lanes(s, keys.first - b * kBlockTokens, keys.last - b * kBlockTokens, -__builtin_inff());
        top = max(top, s);
        store(at, s);
    }
    const float old = state.highest[row];
    const float found = max_lane(top);
    const float highest = found > old ? found : old;
    /* Where every score is -infinity, exp(score - 0) is still 0. */
    const float origin = highest == -__builtin_inff() ? 0 : highest;
    Vec sum = zero();
    for (int64_t b = first; b < last; ++b) {
        float* at = scores + b * kBlockTokens;
        const Vec e = exp(sub(load(at), broadcast(origin)));
        sum = add(sum, e);
        store(at, e);
    }
    const Vec factor = exp(broadcast(old - origin));
    state.highest[row] = highest;
    state.sum[row] = state.sum[row] * first_lane(factor) + sum_lanes(sum);
    if (found > old) {
        for (int64_t d = 0; d < state.stride; d += 16) {
            float* out = state.out + row * state.stride + d;
            store(out, mul(load(out), factor));
        }
    }
}

/* out += weights * V over keys [first, last) of one block, R rows from `row`; weights[r] are those of the block. */
template <int R, class Element>
TACHO_INLINE void add_values(const Element* v, int64_t head_dim, const float* const (&weights)[R], int64_t first,
                             int64_t last, int64_t row, const State& state) {
    const auto gather = [&](auto panels, int64_t d, auto panel) {
        constexpr int P = decltype(panels)::value;
        const Element* w[P];
        Vec sum[R][P];
        TACHO_UNROLL for (int i = 0; i < P; ++i) {
            w[i] = v + d + i * 16;
        }
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                sum[r][i] = load(state.out + (row + r) * state.stride + d + i * 16);
            }
        }
        multiply(sum, w, head_dim, weights, first, last, panel);
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            TACHO_UNROLL for (int i = 0; i < P; ++i) {
                store(state.out + (row + r) * state.stride + d + i * 16, sum[r][i]);
            }
        }
    };
    constexpr int wide = tile_panels(R);
    int64_t d = 0;
    for (; d + 16 * wide <= head_dim; d += 16 * wide) {
        gather(Count<wide>{}, d, WholePanel{});
    }
    for (; d + 16 <= head_dim; d += 16) {
        gather(Count<1>{}, d, WholePanel{});
    }
    if (d < head_dim) {
        gather(Count<1>{}, d, PartialPanel{head_dim - d});
    }
}

/* Rows [row, row + R) of a group that begins at item row `group_row`, against the chunk of keys from `chunk`. */
template <class Element>
struct ChunkTile {
    const Head<Element>& head;
    const State& state;
    int64_t group_row;
    int64_t row;
    int64_t chunk;

    template <int R>
    void run() const {
        Keys keys[R];
        const float* q[R];
        int64_t first = kChunkKeys;
        int64_t last = 0;
        bool alike = true;
        for (int r = 0; r < R; ++r) {
            const Keys visible = head.visible(group_row + row + r);
            keys[r] = {larger(visible.first - chunk, 0), smaller(visible.last - chunk, kChunkKeys)};
            q[r] = head.p.q + head.offset(group_row + row + r, head.p.ldq);
            alike = alike && keys[r].first == keys[0].first && keys[r].last == keys[0].last;
            if (keys[r].first < keys[r].last) {
                first = smaller(first, keys[r].first);
                last = larger(last, keys[r].last);
            }
        }
        if (first >= last) {
            return;
        }
        alignas(64) float scores[R][kChunkKeys];
        const int64_t first_block = first / kBlockTokens;
        const int64_t last_block = (last + kBlockTokens - 1) / kBlockTokens;
        score_blocks(head, chunk, first_block, last_block, q, scores);
        for (int r = 0; r < R; ++r) {
            if (keys[r].first < keys[r].last) {
                soften(head.p, keys[r], row + r, state, scores[r]);
            }
        }
        for (int64_t b = first_block; b < last_block; ++b) {
            const Element* v = head.panel(head.p.v_cache, chunk / kBlockTokens + b);
            const int64_t from = b * kBlockTokens;
            if (alike) {
                const float* weights[R];
                TACHO_UNROLL for (int r = 0; r < R; ++r) {
                    weights[r] = scores[r] + from;
                }
                add_values(v, head.p.head_dim, weights, larger(first - from, 0), smaller(last - from, kBlockTokens),
                           row, state);
                continue;
            }
            for (int r = 0; r < R; ++r) {
                const float* const weights[1] = {scores[r] + from};
                add_values(v, head.p.head_dim, weights, larger(keys[r].first - from, 0),
                           smaller(keys[r].last - from, kBlockTokens), row + r, state);
            }
        }
    }
};
template <class Element>
ChunkTile(const Head<Element>&, const State&, int64_t, int64_t, int64_t) -> ChunkTile<Element>;

/* Divides a row by its sum, the sink's share included, and writes it. */
template <class Element>
void finish(const Head<Element>& head, const State& state, int64_t row, int64_t item_row) {
    Vec factor = broadcast(1.0f);
    float sum = state.sum[row];
    if (head.p.sinks != nullptr) {
        const float sink = head.p.sinks[head.kv_head * head.group + item_row % head.group];
        const float old = state.highest[row];
        const float highest = sink > old ? sink : old;
        factor = exp(broadcast(old - highest));
        sum = sum * first_lane(factor) + first_lane(exp(broadcast(sink - highest)));
    }
    factor = div(factor, broadcast(sum));
    float* out = head.p.out + head.offset(item_row, head.p.ldo);
    for (int64_t d = 0; d < head.p.head_dim; d += 16) {
        const Vec value = mul(load(state.out + row * state.stride + d), factor);
        store_partial(out + d, value, smaller(16, head.p.head_dim - d));
    }
}

/* Item rows [begin, begin + rows). */
template <class Element>
void attend_group(const Head<Element>& head, int64_t begin, int64_t rows, const State& state) {
    for (int64_t i = 0; i < rows * state.stride; i += 16) {
        store(state.out + i, zero());
    }
    for (int64_t i = 0; i < rows; ++i) {
        state.highest[i] = -__builtin_inff();
        state.sum[i] = 0;
    }
    const int64_t first = head.visible(begin).first;
    const int64_t last = head.visible(begin + rows - 1).last;
    for (int64_t chunk = first / kChunkKeys * kChunkKeys; chunk < last; chunk += kChunkKeys) {
        for (int64_t row = 0; row < rows; row += kTileRows) {
            with_rows(smaller(kTileRows, rows - row), ChunkTile{head, state, begin, row, chunk});
        }
    }
    for (int64_t row = 0; row < rows; ++row) {
        finish(head, state, row, begin + row);
    }
}

template <class Element>
void attend(const tacho_attention_params& p, int64_t begin, int64_t end) {
    const int64_t stride = padded(p.head_dim);
    float* const rows_end = p.scratch + kGroupRows * stride;
    const State state = {p.scratch, rows_end, rows_end + kGroupRows, stride};
    for (int64_t i = begin; i < end; ++i) {
        const tacho_attention_item& item = p.items[i];
        const int64_t start = p.q_starts[item.sequence];
        const int64_t queries = p.q_starts[item.sequence + 1] - start;
        const int64_t group = p.num_heads / p.num_kv_heads;
        const Head<Element> head = {p,
                                    p.block_table + item.sequence * p.block_table_stride,
                                    item.kv_head,
                                    group,
                                    start,
                                    p.context_lens[item.sequence] - queries};
        const int64_t last_row = item.q_end * group;
        for (int64_t row = item.q_begin * group; row < last_row; row += kGroupRows) {
            attend_group(head, row, smaller(kGroupRows, last_row - row), state);
        }
    }
}

}  // namespace

int64_t attention_scratch(int64_t head_dim) {
    return kGroupRows * (padded(head_dim) + 2);
}

void attention(const tacho_attention_params& p, int64_t begin, int64_t end) {
    switch (p.kv_dtype) {
        case TACHO_DTYPE_F32:
            return attend<float>(p, begin, end);
        case TACHO_DTYPE_F16:
            return attend<Half>(p, begin, end);
        default:
            return attend<BFloat>(p, begin, end);
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
