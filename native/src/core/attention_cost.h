/* What an item of attention costs: how many keys its queries see. */
#ifndef TACHO_CORE_ATTENTION_COST_H
#define TACHO_CORE_ATTENTION_COST_H

#include <cstdint>

#include "tacho/tacho.h"

namespace tacho {

/* Keys of an item's splits. */
struct AttentionCost {
    int64_t visible_keys; /* summed over the item's queries */
    int64_t first_key;    /* that any of its queries sees */
    int64_t union_keys;   /* from there on, that at least one of its queries sees; 0 if a window has left the splits */
};

/* Cost of an item whose tile and splits are valid. */
AttentionCost attention_cost(const tacho_attention_params& p, const tacho_attention_item& item);

}  // namespace tacho

#endif
