/*
 * What each operation demands of its arguments. Three steps, so that nothing is read before it is known to be there:
 * check_shape looks at the sizes and pointers, work_items says how many items these make, check_contents looks at what
 * the index arrays hold for the items of a range. All return a status and leave the words for tacho_last_error.
 */
#ifndef TACHO_API_CHECKS_H
#define TACHO_API_CHECKS_H

#include <cstdint>

#include "cpu/kernel_table.h"
#include "tacho/tacho.h"

namespace tacho {

#define KERNEL(operation)                                                                 \
    int32_t check_shape(const tacho_##operation##_params& p, const KernelTable& kernels); \
    int64_t work_items(const tacho_##operation##_params& p);
#include "cpu/kernels.def"
#undef KERNEL

int32_t check_contents(const tacho_embedding_lookup_params& p, int64_t begin, int64_t end);
int32_t check_contents(const tacho_kv_write_params& p, int64_t begin, int64_t end);
int32_t check_contents(const tacho_attention_params& p, int64_t begin, int64_t end);
int32_t check_contents(const tacho_kv_copy_blocks_params& p, int64_t begin, int64_t end);

/* The other operations have no index arrays. */
template <class Params>
int32_t check_contents(const Params&, int64_t, int64_t) {
    return TACHO_OK;
}

/* dtype and sizes of a packed matrix. */
int32_t check_weight_shape(const char* operation, int32_t dtype, int64_t n, int64_t k);

/* Form and length of a row of activations. */
int32_t check_activation_shape(const char* operation, int32_t format, int64_t k);

/* Heads of attention. */
int32_t check_heads(const char* operation, int64_t num_heads, int64_t num_kv_heads, int64_t head_dim);

}  // namespace tacho

#endif
