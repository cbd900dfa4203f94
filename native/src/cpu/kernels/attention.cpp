/*
 * Attention over the paged KV cache.
 *
 * The rows of an item (its queries times the query heads of its kv head) are taken in groups of kGroupRows. The keys of
 * a sequence are cut into splits of TACHO_ATTENTION_SPLIT_KEYS at multiples of that number, a split into chunks of
 * kChunkKeys. A group walks the chunks of a split, and a chunk's K and V stay in the cache while all tiles of the group
 * pass. A row gathers each split by itself, and the splits are then merged in ascending order, whether one item held
 * them all or several did: the last of a tile's items to come finds by the tile's ticket that it is the last, and
 * merges.
 *
 * What is read next is asked for meanwhile, so that it need not be waited for: the values of a chunk with its first
 * scores, and with its first values the keys of the next chunk, that of the next item too.
 *
 * Within a chunk a row meets only the keys that it sees: scores of others are masked, their V is never multiplied (it
 * may be NaN). A row's arithmetic follows from its own position alone, so neither the items nor the other rows of the
 * batch change its bits.
 *
 *   scratch   | rows of the split at hand [kGroupRows] | rows of all splits so far [kGroupRows] |   attention_state.h
 */
#include "attention_state.h"
#include "attention_tile.h"
#include "core/kv_layout.h"

namespace tacho {
namespace TACHO_ISA_NAMESPACE {

namespace {

constexpr int64_t kGroupRows = 48;
constexpr int64_t kSplitKeys = TACHO_ATTENTION_SPLIT_KEYS;
static_assert(kSplitKeys % kChunkKeys == 0, "a chunk lies in one split");

/* A row of a head: a query, counted from the sequence's first of the batch, with one of the kv head's query heads. */
struct Row {
    int64_t query;
    int64_t member;
};

/* One kv head of one sequence, and where its queries stand. */
template <class Panel>
struct Head {
    const tacho_attention_params& p;
    const int32_t* blocks; /* of the sequence */
    int64_t kv_head;
    int64_t group;     /* query heads */
    int64_t first_row; /* of the sequence's first query in q and out */
    int64_t base;      /* position of that query */

    Head(const tacho_attention_params& params, const tacho_attention_item& item)
        : p(params),
          blocks(params.block_table + item.sequence * params.block_table_stride),
          kv_head(item.kv_head),
          group(params.num_heads / params.num_kv_heads),
          first_row(params.q_starts[item.sequence]),
          base(params.context_lens[item.sequence] - (params.q_starts[item.sequence + 1] - first_row)) {}

    const char* panel(const void* cache, int64_t block) const {
        return static_cast<const char*>(cache) +
               kv_panel(p.kv_dtype, blocks[block], p.num_kv_heads, kv_head, p.head_dim);
    }

    /* Rows are counted [query][member]. */
    Row row(int64_t number) const { return {number / group, number % group}; }
    Row row_after(Row row) const {
        return row.member + 1 < group ? Row{row.query, row.member + 1} : Row{row.query + 1, 0};
    }

    /* Offset of a row's head in q or out. */
    int64_t offset(Row row, int64_t ld) const {
        return (first_row + row.query) * ld + (kv_head * group + row.member) * p.head_dim;
    }

    /* The keys that a row sees. */
    Keys visible(Row row) const {
        const int64_t position = base + row.query;
        return {p.window > 0 ? larger(0, position - p.window + 1) : 0, position + 1};
    }

    const float* sink(Row row) const {
        return p.sinks == nullptr ? nullptr : p.sinks + kv_head * group + row.member;
    }
};

/* Rows [begin, begin + count) of a head, counted as Head::offset does. */
struct Rows {
    int64_t begin;
    int64_t count;
};

/* Blocks [first, last) of a head, those of one chunk. */
template <class Panel>
struct Blocks {
    const Head<Panel>& head;
    int64_t first;
    int64_t last;

    Ahead ahead(const void* cache) const {
        Ahead ahead;
        ahead.count = last - first;
        ahead.bytes = kBlockTokens * kv_head_bytes(head.p.kv_dtype, head.p.head_dim);
        for (int64_t i = 0; i < ahead.count; ++i) {
            ahead.panels[i] = head.panel(cache, first + i);
        }
        return ahead;
    }
};

/* Up to kAttentionRows rows of a group against the chunk of keys from `from`. */
template <class Panel>
struct ChunkTile {
    const Head<Panel>& head;
    const States& states; /* of the group */
    int64_t group_begin;
    const Chunk<Panel>& chunk;
    int64_t from;

    /* `values_ahead` are those of the chunk, `keys_ahead` the keys of the chunk that comes next. */
    template <int R, class Next>
    TACHO_INLINE void run(int64_t row, Next& values_ahead, Next& keys_ahead) const {
        Keys keys[R];
        const float* q[R];
        float* out[R];
        Keys all = {kChunkKeys, 0};    /* that a row sees */
        Keys common = {0, kChunkKeys}; /* that every row sees */
        Row place = head.row(group_begin + row);
        for (int r = 0; r < R; ++r, place = head.row_after(place)) {
            keys[r] = head.visible(place).within(from, kChunkKeys);
            q[r] = head.p.q + head.offset(place, head.p.ldq);
            out[r] = states[row + r].out;
            common = {larger(common.first, keys[r].first), smaller(common.last, keys[r].last)};
            if (!keys[r].empty()) {
                all = {smaller(all.first, keys[r].first), larger(all.last, keys[r].last)};
            }
        }
        if (all.empty()) {
            values_ahead.fetch_rest();
            keys_ahead.fetch_rest();
            return;
        }
        alignas(64) float scores[R][kChunkKeys];
        score_blocks<R>(chunk, all.first / kBlockTokens, (all.last + kBlockTokens - 1) / kBlockTokens, q,
                        head.p.head_dim, scores, values_ahead);
        values_ahead.fetch_rest();
        /* Of all rows first: their searches do not wait for each other. */
        Scores found[R] = {};
        for (int r = 0; r < R; ++r) {
            if (!keys[r].empty()) {
                found[r].find_highest(head.p, keys[r], scores[r]);
            }
        }
        for (int r = 0; r < R; ++r) {
            if (!keys[r].empty()) {
                found[r].soften(states[row + r]);
            }
        }
        /* Before the common keys and behind them each row has its own; a row's keys are added in ascending order. */
        common.first = smaller(common.first, common.last);
        for (int r = 0; r < R; ++r) {
            add_row({keys[r].first, common.empty() ? keys[r].last : common.first}, scores + r, out[r]);
        }
        if (!common.empty()) {
            add_values<R>(chunk, common.first, common.last, scores, head.p.head_dim, out, keys_ahead);
            for (int r = 0; r < R; ++r) {
                add_row({common.last, keys[r].last}, scores + r, out[r]);
            }
        }
        keys_ahead.fetch_rest();
    }

    void add_row(Keys keys, const float (*weights)[kChunkKeys], float* out) const {
        if (!keys.empty()) {
            float* const row_out[1] = {out};
            NothingAhead nothing;
            add_values<1>(chunk, keys.first, keys.last, weights, head.p.head_dim, row_out, nothing);
        }
    }

    /* All rows of the group. The first tile fetches for all. */
    void run_rows(int64_t count, Ahead values_ahead, Ahead keys_ahead) const {
        if (count < kAttentionRows) {
            return run_rest<kAttentionRows - 1>(0, count, values_ahead, keys_ahead);
        }
        run<kAttentionRows>(0, values_ahead, keys_ahead);
        NothingAhead nothing;
        int64_t row = kAttentionRows;
        for (; row + kAttentionRows <= count; row += kAttentionRows) {
            run<kAttentionRows>(row, nothing, nothing);
        }
        run_rest<kAttentionRows - 1>(row, count - row, nothing, nothing);
    }

    /* Not inlined into one function: GCC 12 then keeps pointers in vector registers. */
    template <int R, class Next>
    void run_rest(int64_t row, int64_t count, Next& values_ahead, Next& keys_ahead) const {
        if constexpr (R > 0) {
            return count == R ? run<R>(row, values_ahead, keys_ahead)
                              : run_rest<R - 1>(row, count, values_ahead, keys_ahead);
        }
    }
};

/* The keys of one split that rows see. */
template <class Panel>
Keys split_keys(const Head<Panel>& head, Rows rows, int64_t split) {
    return {larger(head.visible(head.row(rows.begin)).first, split * kSplitKeys),
            smaller(head.visible(head.row(rows.begin + rows.count - 1)).last, (split + 1) * kSplitKeys)};
}

/* The blocks of `keys` in the chunk that begins with key `from`. */
template <class Panel>
Blocks<Panel> chunk_blocks(const Head<Panel>& head, Keys keys, int64_t from) {
    return {head, larger(keys.first, from) / kBlockTokens,
            (smaller(keys.last, from + kChunkKeys) + kBlockTokens - 1) / kBlockTokens};
}

template <class Panel>
Blocks<Panel> first_blocks(const Head<Panel>& head, Keys keys) {
    return keys.empty() ? Blocks<Panel>{head, 0, 0}
                        : chunk_blocks(head, keys, keys.first / kChunkKeys * kChunkKeys);
}

/* Gathers what the rows see of one split. The keys of `after` are read next. */
template <class Panel>
void attend_split(const Head<Panel>& head, Rows rows, int64_t split, const States& states,
                  const Blocks<Panel>& after) {
    for (int64_t row = 0; row < rows.count; ++row) {
        states[row].clear();
    }
    const Keys seen = split_keys(head, rows, split);
    Chunk<Panel> chunk;
    for (int64_t from = seen.first / kChunkKeys * kChunkKeys; from < seen.last; from += kChunkKeys) {
        const Blocks<Panel> blocks = chunk_blocks(head, seen, from);
        for (int64_t block = blocks.first; block < blocks.last; ++block) {
            const int64_t at = block - from / kBlockTokens;
            chunk.keys[at] = Panel::at(head.panel(head.p.k_cache, block), head.p.head_dim);
            chunk.values[at] = Panel::at(head.panel(head.p.v_cache, block), head.p.head_dim);
        }
        const bool is_last = from + kChunkKeys >= seen.last;
        const Ahead keys_ahead = is_last ? after.ahead(head.p.k_cache)
                                         : chunk_blocks(head, seen, from + kChunkKeys).ahead(head.p.k_cache);
        ChunkTile<Panel>{head, states, rows.begin, chunk, from}.run_rows(rows.count, blocks.ahead(head.p.v_cache),
                                                                         keys_ahead);
    }
}

/* What is read after a split of an item's rows; `after` comes after the last. */
template <class Panel>
Blocks<Panel> behind(const Head<Panel>& head, const tacho_attention_item& item, Rows rows, int64_t split,
                     const Blocks<Panel>& after) {
    return split + 1 < item.split_end ? first_blocks(head, split_keys(head, rows, split + 1)) : after;
}

/* total += what a row has gathered of a split, if it sees any of it. */
template <class Panel>
void add_split(const Head<Panel>& head, Row row, int64_t split, const State& gathered, const State& total) {
    const Keys visible = head.visible(row);
    const int64_t first = visible.first / kSplitKeys;
    if (split == first) {
        total.copy(gathered);
    } else if (split > first && split * kSplitKeys < visible.last) {
        merge(total, gathered);
    }
}

template <class Panel>
void finish_row(const Head<Panel>& head, Row row, const State& total) {
    finish(total, head.sink(row), head.p.head_dim, head.p.out + head.offset(row, head.p.ldo));
}

/* An item that holds all splits of its rows. */
template <class Panel>
void attend_whole(const Head<Panel>& head, const tacho_attention_item& item, Rows rows, const States& split_states,
                  const States& totals, const Blocks<Panel>& after) {
    for (int64_t split = item.split_begin; split < item.split_end; ++split) {
        attend_split(head, rows, split, split_states, behind(head, item, rows, split, after));
        for (int64_t row = 0; row < rows.count; ++row) {
            add_split(head, head.row(rows.begin + row), split, split_states[row], totals[row]);
        }
    }
    for (int64_t row = 0; row < rows.count; ++row) {
        finish_row(head, head.row(rows.begin + row), totals[row]);
    }
}

/* Merges a tile whose items have all come: partial rows [split][row]. */
template <class Panel>
void merge_tile(const Head<Panel>& head, Rows rows, int64_t splits, const States& partials, const State& total) {
    for (int64_t row = 0; row < rows.count; ++row) {
        for (int64_t split = 0; split < splits; ++split) {
            add_split(head, head.row(rows.begin + row), split, partials[split * rows.count + row], total);
        }
        finish_row(head, head.row(rows.begin + row), total);
    }
}

/* The rows of an item. */
template <class Panel>
Rows tile_of(const Head<Panel>& head, const tacho_attention_item& item) {
    return {item.q_begin * head.group, (item.q_end - item.q_begin) * head.group};
}

template <class Panel>
void attend(const tacho_attention_params& p, int64_t begin, int64_t end) {
    const int64_t floats = state_floats(p.head_dim);
    const States split_states = {p.scratch, floats - 16};
    const States totals = {p.scratch + kGroupRows * floats, floats - 16};
    for (int64_t i = begin; i < end; ++i) {
        const tacho_attention_item& item = p.items[i];
        const Head<Panel> head(p, item);
        const Rows tile = tile_of(head, item);
        if (tile.count == 0) {
            continue;
        }
        const tacho_attention_item& next_item = p.items[smaller(i + 1, end - 1)];
        const Head<Panel> next_head(p, next_item);
        const Rows next_tile = tile_of(next_head, next_item);
        const Blocks<Panel> nothing = {head, 0, 0};
        const Blocks<Panel> after =
            i + 1 == end || next_tile.count == 0
                ? nothing
                : first_blocks(next_head, split_keys(next_head, {next_tile.begin, smaller(kGroupRows, next_tile.count)},
                                                     next_item.split_begin));
        const States partials = {item.partial < 0 ? nullptr : p.partials + item.partial * floats, floats - 16};
        for (int64_t row = 0; row < tile.count; row += kGroupRows) {
            const Rows rows = {tile.begin + row, smaller(kGroupRows, tile.count - row)};
            const Blocks<Panel>& after_rows = row + kGroupRows < tile.count ? nothing : after;
            if (item.partial < 0) {
                attend_whole(head, item, rows, split_states, totals, after_rows);
                continue;
            }
            for (int64_t split = item.split_begin; split < item.split_end; ++split) {
                attend_split(head, rows, split, {partials[split * tile.count + row].out, partials.padded},
                             behind(head, item, rows, split, after_rows));
            }
        }
        if (item.partial >= 0) {
            const int32_t splits = (head.base + item.q_end + kSplitKeys - 1) / kSplitKeys;
            const int32_t done = item.split_end - item.split_begin;
            if (__atomic_add_fetch(p.tickets + item.ticket, done, __ATOMIC_ACQ_REL) == splits) {
                merge_tile(head, tile, splits, partials, totals[0]);
                __atomic_store_n(p.tickets + item.ticket, 0, __ATOMIC_RELAXED);
            }
        }
    }
}

}  // namespace

int64_t attention_scratch(int64_t head_dim) {
    return 2 * kGroupRows * state_floats(head_dim);
}

void attention(const tacho_attention_params& p, int64_t begin, int64_t end) {
    switch (p.kv_dtype) {
        case TACHO_DTYPE_F32:
            return attend<PlainPanel<float>>(p, begin, end);
        case TACHO_DTYPE_F16:
            return attend<PlainPanel<Half>>(p, begin, end);
        case TACHO_DTYPE_Q8_0:
            return attend<ScaledPanel>(p, begin, end);
        default:
            return attend<PlainPanel<BFloat>>(p, begin, end);
    }
}

}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho
