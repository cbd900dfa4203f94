/*
 * The two products of attention: a tile of R rows (a query with one of its heads) against P panels of sixteen.
 *
 *   scores   [R][P blocks of 16 keys]    sum over the head of q * K, from d = 0 on; with scales, of each group of
 *                                        elements first, and then of scale * group
 *   values   [R][P times 16 elements]    += sum over keys, ascending, of weight (* scale) * V
 *
 * An element is the same chains of fma in that order whatever R and P are: the tile in which a row lies never changes
 * its bits.
 */
#ifndef TACHO_CPU_KERNELS_ATTENTION_TILE_H
#define TACHO_CPU_KERNELS_ATTENTION_TILE_H

#include "kv_panel.h"

/* Arrays of vectors stay in registers only where every loop over them is unrolled. */
#define TACHO_UNROLL _Pragma("GCC unroll 8")

namespace tacho {
namespace TACHO_ISA_NAMESPACE {
namespace {

/* Keys of a chunk: scores of that many are held at once. */
constexpr int64_t kChunkKeys = 128;
constexpr int64_t kChunkBlocks = kChunkKeys / kBlockTokens;
constexpr int64_t kLineBytes = 64;

#if defined(__AVX512F__)
constexpr int kAttentionRows = 6;
constexpr int attention_panels(int rows) {
    return rows > 6 ? 2 : 4;
}
#elif defined(__AVX2__)
constexpr int kAttentionRows = 6;
constexpr int attention_panels(int rows) {
    return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}
#else
constexpr int kAttentionRows = 4;
constexpr int attention_panels(int) {
    return 1;
}
#endif

/* A number as a type, for generic lambdas. */
template <int N>
struct Count {
    static constexpr int value = N;
};

/* The panels of a chunk's blocks. */
template <class Panel>
struct Chunk {
    Panel keys[kChunkBlocks];
    Panel values[kChunkBlocks];
};

/* Panels that are read next. They are asked for while others are multiplied, as many bytes in a step as are read in
 * it, and then what is left: the processor's own prefetching ends with a panel. */
struct Ahead {
    const char* panels[kChunkBlocks];
    int64_t count;
    int64_t bytes; /* of a panel */
    int64_t panel = 0;
    int64_t at = 0;

    template <int64_t kBytes>
    TACHO_INLINE void fetch() {
        if (panel == count) {
            return;
        }
        const char* from = panels[panel] + at;
        if (kBytes >= kLineBytes || at % kLineBytes == 0) {
            TACHO_UNROLL for (int64_t i = 0; i < kBytes; i += kLineBytes) {
                __builtin_prefetch(from + i, 0, 2);
            }
        }
        at += kBytes;
        if (at >= bytes) {
            at = 0;
            ++panel;
        }
    }
    TACHO_INLINE void fetch_rest() {
        while (panel < count) {
            fetch<kLineBytes>();
        }
    }
};
/* The same of no panels. */
struct NothingAhead {
    template <int64_t kBytes>
    TACHO_INLINE void fetch() {}
    TACHO_INLINE void fetch_rest() {}
};

template <int R, int P>
TACHO_INLINE void clear(Vec (&sum)[R][P]) {
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            sum[r][p] = zero();
        }
    }
}

/* sum[r] += x[r][k] * panel */
template <int R, int P, class Rows>
TACHO_INLINE void multiply(Vec (&sum)[R][P], const Vec (&panel)[P], const Rows& x, int64_t k) {
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        const Vec factor = broadcast(x[r][k]);
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            sum[r][p] = fma(factor, panel[p], sum[r][p]);
        }
    }
}

/* What a group of elements adds to the scores from `at` on: sum[..][p]; the first group writes them. */
template <int R, int P, class E>
TACHO_INLINE void put_scores(const PlainPanel<E>&, int64_t, const Vec (&sum)[R][P], int p, float (*scores)[kChunkKeys],
                             int64_t at) {
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        store(scores[r] + at, sum[r][p]);
    }
}
template <int R, int P>
TACHO_INLINE void put_scores(const ScaledPanel& panel, int64_t group, const Vec (&sum)[R][P], int p,
                             float (*scores)[kChunkKeys], int64_t at) {
    const Vec scale = panel.scale(group);
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        store(scores[r] + at, fma(sum[r][p], scale, group == 0 ? zero() : load(scores[r] + at)));
    }
}

/* scores[r][16 b ..] of the blocks [block, block + P). What is `next` is asked for meanwhile. */
template <int R, int P, class Panel, class Next>
TACHO_INLINE void score_tile(const Chunk<Panel>& chunk, int64_t block, const float* const (&q)[R], int64_t head_dim,
                             float (*scores)[kChunkKeys], Next& next) {
    Panel k[P];
    TACHO_UNROLL for (int p = 0; p < P; ++p) {
        k[p] = chunk.keys[block + p];
    }
    const int64_t group_elements = Panel::kScaled ? kScaleElements : head_dim;
    for (int64_t group = 0; group < head_dim; group += group_elements) {
        Vec sum[R][P];
        clear(sum);
        const int64_t end = smaller(group + group_elements, head_dim);
        for (int64_t d = group; d < end; ++d) {
            Vec panel[P];
            TACHO_UNROLL for (int p = 0; p < P; ++p) {
                panel[p] = k[p].key(d);
            }
            next.template fetch<P * kBlockTokens * Panel::kElementBytes>();
            multiply(sum, panel, q, d);
        }
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            put_scores(k[p], group, sum, p, scores, (block + p) * kBlockTokens);
        }
    }
}

/* Scores of the chunk's blocks [first, last). */
template <int R, class Panel, class Next>
TACHO_INLINE void score_blocks(const Chunk<Panel>& chunk, int64_t first, int64_t last, const float* const (&q)[R],
                               int64_t head_dim, float (*scores)[kChunkKeys], Next& next) {
    constexpr int P = attention_panels(R);
    int64_t block = first;
    for (; block + P <= last; block += P) {
        score_tile<R, P>(chunk, block, q, head_dim, scores, next);
    }
    for (; block < last; ++block) {
        score_tile<R, 1>(chunk, block, q, head_dim, scores, next);
    }
}

/* One step of P times 16 elements of a value; kCount is 16, or 0 where the head ends within the last of them. */
template <int P, bool kWhole, class Panel>
TACHO_INLINE void load_value(Vec (&value)[P], const Panel& panel, int64_t token, int64_t d) {
    TACHO_UNROLL for (int p = 0; p < P; ++p) {
        value[p] = kWhole ? panel.value(token, d + 16 * p) : panel.value(token, d + 16 * p, panel.head_dim - d);
    }
}

/* The weights that V's elements [d, d + 16 P) are multiplied with: of[r], or with scales, of[r] times those. */
template <class Panel, int R, int P>
struct ValueWeights {
    const float (*of)[kChunkKeys];

    TACHO_INLINE ValueWeights(const Chunk<Panel>&, int64_t, int64_t, const float (*weights)[kChunkKeys], int64_t)
        : of(weights) {}
    TACHO_INLINE void add_products(Vec (&sum)[R][P], const Vec (&value)[P], int64_t key) const {
        multiply(sum, value, of, key);
    }
};
template <int R, int P>
struct ValueWeights<ScaledPanel, R, P> {
    static constexpr int kGroups = P > 2 ? P / 2 : 1; /* of two times 16 elements; d begins one if P > 1 */
    alignas(64) float of[kGroups][R][kChunkKeys];

    TACHO_INLINE ValueWeights(const Chunk<ScaledPanel>& chunk, int64_t first, int64_t last,
                              const float (*weights)[kChunkKeys], int64_t d) {
        for (int64_t block = first / kBlockTokens; block * kBlockTokens < last; ++block) {
            const int64_t at = block * kBlockTokens;
            for (int g = 0; g < kGroups; ++g) {
                const Vec scale = chunk.values[block].scale(d + g * kScaleElements);
                for (int r = 0; r < R; ++r) {
                    store(of[g][r] + at, mul(load(weights[r] + at), scale));
                }
            }
        }
    }
    TACHO_INLINE void add_products(Vec (&sum)[R][P], const Vec (&value)[P], int64_t key) const {
        TACHO_UNROLL for (int r = 0; r < R; ++r) {
            Vec factor[kGroups];
            TACHO_UNROLL for (int g = 0; g < kGroups; ++g) {
                factor[g] = broadcast(of[g][r][key]);
            }
            TACHO_UNROLL for (int p = 0; p < P; ++p) {
                sum[r][p] = fma(factor[p * kGroups / P], value[p], sum[r][p]);
            }
        }
    }
};

/* out[r][d ..] += weights * V over the keys [first, last) of a chunk; weights[r] are those of the whole chunk. */
template <int R, int P, bool kWhole, class Panel, class Next>
TACHO_INLINE void value_tile(const Chunk<Panel>& chunk, int64_t first, int64_t last, const float (*weights)[kChunkKeys],
                             int64_t d, float* const (&out)[R], Next& next) {
    const ValueWeights<Panel, R, P> value_weights(chunk, first, last, weights, d);
    Vec sum[R][P];
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            sum[r][p] = load(out[r] + d + 16 * p);
        }
    }
    for (int64_t key = first; key < last;) {
        const int64_t block = key / kBlockTokens;
        const Panel panel = chunk.values[block];
        const int64_t end = smaller(last, (block + 1) * kBlockTokens);
        for (; key < end; ++key) {
            const int64_t token = key % kBlockTokens;
            Vec value[P];
            load_value<P, kWhole>(value, panel, token, d);
            next.template fetch<16 * P * Panel::kElementBytes>();
            value_weights.add_products(sum, value, key);
        }
    }
    TACHO_UNROLL for (int r = 0; r < R; ++r) {
        TACHO_UNROLL for (int p = 0; p < P; ++p) {
            store(out[r] + d + 16 * p, sum[r][p]);
        }
    }
}

/* The same for the whole head; out has room for it rounded up to 16. */
template <int R, class Panel, class Next>
TACHO_INLINE void add_values(const Chunk<Panel>& chunk, int64_t first, int64_t last, const float (*weights)[kChunkKeys],
                             int64_t head_dim, float* const (&out)[R], Next& next) {
    constexpr int P = attention_panels(R);
    int64_t d = 0;
    for (; d + 16 * P <= head_dim; d += 16 * P) {
        value_tile<R, P, true>(chunk, first, last, weights, d, out, next);
    }
    for (; d + 16 <= head_dim; d += 16) {
        value_tile<R, 1, true>(chunk, first, last, weights, d, out, next);
    }
    if (d < head_dim) {
        value_tile<R, 1, false>(chunk, first, last, weights, d, out, next);
    }
}

}  // namespace
}  // namespace TACHO_ISA_NAMESPACE
}  // namespace tacho

#endif
