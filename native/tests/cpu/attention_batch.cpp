#include "attention_batch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace tacho_test {

namespace {

int64_t blocks_of(int64_t tokens) {
    return (tokens + 15) / 16;
}

int64_t sum_of(const std::vector<int32_t>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

/* A spare block or two remain NaN. */
int64_t total_blocks(const AttentionSizes& sizes) {
    int64_t blocks = 2;
    for (int32_t context : sizes.contexts) {
        blocks += blocks_of(context);
    }
    return blocks;
}

}  // namespace

int64_t kv_head_bytes(int32_t dtype, int64_t head_dim) {
    return dtype == TACHO_DTYPE_Q8_0 ? head_dim + (head_dim + 31) / 32 * 2 : head_dim * row_bytes(dtype, 1);
}

AttentionBatch::AttentionBatch(int32_t isa, const AttentionSizes& sizes, Numbers& numbers)
    : isa_(isa),
      sizes_(sizes),
      stride_(blocks_of(*std::max_element(sizes.contexts.begin(), sizes.contexts.end())) + 1),
      num_blocks_(total_blocks(sizes)),
      q_(numbers.matrix(sum_of(sizes.queries), sizes.num_kv_heads * sizes.group * sizes.head_dim)),
      q_starts_(static_cast<int64_t>(sizes.queries.size()) + 1),
      context_lens_(static_cast<int64_t>(sizes.queries.size())),
      table_(static_cast<int64_t>(sizes.queries.size()) * stride_),
      sinks_(sizes.num_kv_heads * sizes.group),
      k_cache_(num_blocks_ * sizes.num_kv_heads * 16 * kv_head_bytes(sizes.kv_dtype, sizes.head_dim)),
      v_cache_(k_cache_.count()) {
    std::vector<int32_t> free(static_cast<size_t>(num_blocks_));
    std::iota(free.begin(), free.end(), 0);
    for (size_t i = free.size(); i > 1; --i) {
        std::swap(free[i - 1], free[static_cast<size_t>(numbers.between(0, static_cast<int64_t>(i) - 1))]);
    }
    for (int64_t h = 0; h < sinks_.count(); ++h) {
        sinks_[h] = static_cast<float>(numbers.normal() * 2);
    }
    q_starts_[0] = 0;
    for (int64_t s = 0; s < context_lens_.count(); ++s) {
        const auto at = static_cast<size_t>(s);
        q_starts_[s + 1] = q_starts_[s] + sizes.queries[at];
        context_lens_[s] = sizes.contexts[at];
        for (int64_t b = 0; b < blocks_of(sizes.contexts[at]); ++b) {
            table_[s * stride_ + b] = free.back();
            free.pop_back();
        }
        for (int64_t token = 0; token < sizes.contexts[at]; ++token) {
            for (int64_t head = 0; head < sizes.num_kv_heads; ++head) {
                for (int64_t d = 0; d < sizes.head_dim; ++d) {
                    if (sizes.kv_dtype == TACHO_DTYPE_Q8_0 && d % 32 == 0) {
                        const int64_t scale = panel(s, token, head) + (d / 32 * 16 + token % 16) * 2;
                        const uint16_t bits = nearest_half(static_cast<double>(numbers.between(20, 60)) / 1000);
                        std::memcpy(k_cache_.data() + scale, &bits, 2);
                        std::memcpy(v_cache_.data() + scale, &bits, 2);
                    }
                    set_key(s, token, head, d, numbers.normal());
                    set_value(s, token, head, d, numbers.normal());
                }
            }
        }
    }
}

std::vector<tacho_attention_item> AttentionBatch::items(int32_t queries, int32_t splits) const {
    std::vector<tacho_attention_item> items;
    int32_t partial = 0;
    int32_t ticket = 0;
    for (size_t s = 0; s < sizes_.queries.size(); ++s) {
        for (int32_t head = 0; head < sizes_.num_kv_heads; ++head) {
            for (int32_t q = 0; q < sizes_.queries[s]; q += queries) {
                const int32_t end = std::min(q + queries, sizes_.queries[s]);
                const int32_t all = (sizes_.contexts[s] - sizes_.queries[s] + end - 1) / 512 + 1;
                if (splits == 0) {
                    items.push_back({static_cast<int32_t>(s), head, q, end, 0, all, -1, 0});
                    continue;
                }
                for (int32_t at = 0; at < all; at += splits) {
                    items.push_back({static_cast<int32_t>(s), head, q, end, at, std::min(at + splits, all), partial,
                                     ticket});
                }
                partial += all * (end - q) * sizes_.group;
                ++ticket;
            }
        }
    }
    return items;
}

tacho_attention_params AttentionBatch::params(const std::vector<tacho_attention_item>& items) const {
    auto p = make<tacho_attention_params>(isa_);
    p.kv_dtype = sizes_.kv_dtype;
    p.num_heads = sizes_.num_kv_heads * sizes_.group;
    p.num_kv_heads = sizes_.num_kv_heads;
    p.head_dim = sizes_.head_dim;
    p.window = sizes_.window;
    p.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(sizes_.head_dim)));
    p.softcap = sizes_.softcap;
    p.num_sequences = context_lens_.count();
    p.num_items = static_cast<int64_t>(items.size());
    p.num_blocks = num_blocks_;
    p.ldq = q_.ld();
    p.block_table_stride = stride_;
    p.q_starts = q_starts_.data();
    p.context_lens = context_lens_.data();
    p.block_table = table_.data();
    p.items = items.data();
    p.q = q_.data();
    p.k_cache = k_cache_.data();
    p.v_cache = v_cache_.data();
    p.sinks = sizes_.sinks ? sinks_.data() : nullptr;
    return p;
}

Matrix AttentionBatch::result(const std::vector<tacho_attention_item>& items, bool singly) const {
    tacho_attention_params p = params(items);
    Matrix out(q_.rows(), q_.columns(), q_.columns() + 3);
    EXPECT_EQ(TACHO_OK, tacho_attention_scratch(isa_, p.num_heads, p.num_kv_heads, p.head_dim, &p.scratch_floats));
    const Guarded<float> scratch(p.scratch_floats);
    for (const tacho_attention_item& item : items) {
        const int32_t all = (sizes_.contexts[item.sequence] - sizes_.queries[item.sequence] + item.q_end - 1) / 512 + 1;
        const int64_t rows = int64_t{all} * (item.q_end - item.q_begin) * sizes_.group;
        p.num_partials = std::max(p.num_partials, item.partial < 0 ? 0 : item.partial + rows);
        p.num_tickets = std::max(p.num_tickets, int64_t{item.ticket} + 1);
    }
    const Guarded<float> partials(p.num_partials * ((sizes_.head_dim + 15) / 16 * 16 + 16));
    std::vector<int32_t> tickets(static_cast<size_t>(p.num_tickets));
    p.partials = partials.data();
    p.tickets = tickets.data();
    p.out = out.data();
    p.ldo = out.ld();
    p.scratch = scratch.data();
    const int64_t step = singly ? 1 : p.num_items;
    for (int64_t i = 0; i < p.num_items; i += step) {
        run(tacho_attention, p, i, i + step);
    }
    EXPECT_TRUE(out.gaps_intact());
    EXPECT_TRUE(scratch.front_intact() && partials.front_intact());
    EXPECT_EQ(std::vector<int32_t>(tickets.size()), tickets);
    return out;
}

std::vector<std::vector<double>> AttentionBatch::expected() const {
    const tacho_attention_params p = params({});
    std::vector<std::vector<double>> rows;
    for (int64_t s = 0; s < context_lens_.count(); ++s) {
        const int64_t queries = q_starts_[s + 1] - q_starts_[s];
        for (int64_t i = 0; i < queries; ++i) {
            const int64_t position = context_lens_[s] - queries + i;
            const int64_t first = p.window > 0 ? std::max<int64_t>(0, position - p.window + 1) : 0;
            std::vector<double> row;
            for (int64_t h = 0; h < p.num_heads; ++h) {
                const int64_t kv_head = h / sizes_.group;
                const float* q = q_.row(q_starts_[s] + i) + h * p.head_dim;
                std::vector<double> scores;
                for (int64_t token = first; token <= position; ++token) {
                    double score = 0;
                    for (int64_t d = 0; d < p.head_dim; ++d) {
                        score += static_cast<double>(q[d]) * key(s, token, kv_head, d);
                    }
                    score *= static_cast<double>(p.scale);
                    const auto cap = static_cast<double>(p.softcap);
                    scores.push_back(cap > 0 ? cap * std::tanh(score / cap) : score);
                }
                const double highest = *std::max_element(scores.begin(), scores.end());
                double sum = p.sinks == nullptr ? 0 : std::exp(static_cast<double>(p.sinks[h]) - highest);
                std::vector<double> out(static_cast<size_t>(p.head_dim), 0.0);
                for (size_t t = 0; t < scores.size(); ++t) {
                    const double weight = std::exp(scores[t] - highest);
                    sum += weight;
                    for (size_t d = 0; d < out.size(); ++d) {
                        out[d] += weight * value(s, first + static_cast<int64_t>(t), kv_head, static_cast<int64_t>(d));
                    }
                }
                for (double element : out) {
                    row.push_back(element / sum);
                }
            }
            rows.push_back(row);
        }
    }
    return rows;
}

int64_t AttentionBatch::panel(int64_t sequence, int64_t token, int64_t head) const {
    const int64_t block = table_[sequence * stride_ + token / 16];
    return (block * sizes_.num_kv_heads + head) * 16 * kv_head_bytes(sizes_.kv_dtype, sizes_.head_dim);
}

double AttentionBatch::element(const uint8_t* panel, int64_t element, int64_t scale) const {
    if (sizes_.kv_dtype != TACHO_DTYPE_Q8_0) {
        return element_value(panel, sizes_.kv_dtype, element);
    }
    const int64_t codes = (sizes_.head_dim + 31) / 32 * 32;
    return element_value(panel, TACHO_DTYPE_F16, scale) * static_cast<int8_t>(panel[codes + element]);
}

void AttentionBatch::set_element(uint8_t* panel, int64_t element, int64_t scale, double value) const {
    if (sizes_.kv_dtype != TACHO_DTYPE_Q8_0) {
        tacho_test::set_element(panel, sizes_.kv_dtype, element, value);
        return;
    }
    const int64_t codes = (sizes_.head_dim + 31) / 32 * 32;
    const double code = std::nearbyint(value / element_value(panel, TACHO_DTYPE_F16, scale));
    panel[codes + element] = static_cast<uint8_t>(static_cast<int8_t>(std::clamp(code, -128.0, 127.0)));
}

double AttentionBatch::key(int64_t sequence, int64_t token, int64_t head, int64_t d) const {
    return element(k_cache_.data() + panel(sequence, token, head), d * 16 + token % 16, d / 32 * 16 + token % 16);
}

double AttentionBatch::value(int64_t sequence, int64_t token, int64_t head, int64_t d) const {
    return element(v_cache_.data() + panel(sequence, token, head), token % 16 * sizes_.head_dim + d,
                   d / 32 * 16 + token % 16);
}

void AttentionBatch::set_key(int64_t sequence, int64_t token, int64_t head, int64_t d, double value) const {
    set_element(k_cache_.data() + panel(sequence, token, head), d * 16 + token % 16, d / 32 * 16 + token % 16, value);
}

void AttentionBatch::set_value(int64_t sequence, int64_t token, int64_t head, int64_t d, double value) const {
    set_element(v_cache_.data() + panel(sequence, token, head), token % 16 * sizes_.head_dim + d,
                d / 32 * 16 + token % 16, value);
}

}  // namespace tacho_test
