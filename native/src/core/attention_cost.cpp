#include "core/attention_cost.h"

#include <algorithm>

namespace tacho {

namespace {

/* Sum of min(i, window) over i in [first, last]; window 0: no limit. */
int64_t capped_sum(int64_t first, int64_t last, int64_t window) {
    const auto sum_to = [](int64_t n) { return n * (n + 1) / 2; };
    if (window == 0 || last <= window) {
        return sum_to(last) - sum_to(first - 1);
    }
    const int64_t full = last - std::max(first - 1, window);
    const int64_t rising = first <= window ? sum_to(window) - sum_to(first - 1) : 0;
    return rising + full * window;
}

}  // namespace

AttentionCost attention_cost(const tacho_attention_params& p, const tacho_attention_item& item) {
    const int64_t s = item.sequence;
    const int64_t queries = int64_t{p.q_starts[s + 1]} - p.q_starts[s];
    const int64_t base = p.context_lens[s] - queries;
    const int64_t first = base + item.q_begin;
    const int64_t last = base + item.q_end - 1;
    if (first > last) {
        return {0, 0};
    }
    const int64_t lowest = p.window > 0 ? std::max<int64_t>(0, first - p.window + 1) : 0;
    return {capped_sum(first + 1, last + 1, p.window), last + 1 - lowest};
}

}  // namespace tacho
