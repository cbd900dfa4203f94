/* What an item of attention costs: how many keys its queries see. */
#ifndef TACHO_CORE_ATTENTION_COST_H
#define TACHO_CORE_ATTENTION_COST_H

#include <cstdint>

#include "tacho/tacho.h"

namespace tacho {

/* Keys of an item. */
struct AttentionCost {
    int64_t visible_keys; /* summed over the item's queries */
    int64_t union_keys;   /* that at least one of its queries sees */
};

/* Cost of an item, without walking its queries. window 0: no window. */
AttentionCost attention_cost(const tacho_attention_params& p, const tacho_attention_item& item);

}  // namespace tacho

#endif
