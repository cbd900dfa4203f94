#include "core/attention_cost.h"

#include <algorithm>

namespace tacho {

AttentionCost attention_cost(const tacho_attention_params& p, const tacho_attention_item& item) {
    const int64_t s = item.sequence;
    const int64_t base = int64_t{p.context_lens[s]} - (int64_t{p.q_starts[s + 1]} - p.q_starts[s]);
    const int64_t begin = int64_t{item.split_begin} * TACHO_ATTENTION_SPLIT_KEYS;
    const int64_t end = int64_t{item.split_end} * TACHO_ATTENTION_SPLIT_KEYS;
    AttentionCost cost = {0, 0, 0};
    int64_t last = 0;
    for (int64_t position = base + item.q_begin; position < base + item.q_end; ++position) {
        const int64_t lowest = p.window > 0 ? std::max<int64_t>(0, position - p.window + 1) : 0;
        const int64_t from = std::max(lowest, begin);
        const int64_t to = std::min(position + 1, end);
        if (from < to) {
            cost.first_key = cost.visible_keys == 0 ? from : cost.first_key;
            cost.visible_keys += to - from;
            last = to;
        }
    }
    cost.union_keys = last - cost.first_key;
    return cost;
}

}  // namespace tacho
