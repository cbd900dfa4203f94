/* A batch for attention in guarded memory: everything that may not be read is NaN or lies behind a guard. */
#ifndef TACHO_TESTS_CPU_ATTENTION_BATCH_H
#define TACHO_TESTS_CPU_ATTENTION_BATCH_H

#include <vector>

#include "reference.h"

namespace tacho_test {

/* Sizes of a batch. */
struct AttentionSizes {
    int32_t kv_dtype = TACHO_DTYPE_F32;
    int32_t num_kv_heads = 1;
    int32_t group = 1; /* query heads a kv head */
    int32_t head_dim = 32;
    int32_t window = 0;
    float softcap = 0;
    bool sinks = false;
    std::vector<int32_t> queries;  /* of each sequence */
    std::vector<int32_t> contexts; /* of each sequence, queries included */
};

/* Bytes of a token's K or V of one head. */
int64_t kv_head_bytes(int32_t dtype, int64_t head_dim);

/* Queries, caches and tables of a batch. The caches hold NaN except in slots before each sequence's length. */
class AttentionBatch {
  public:
    AttentionBatch(int32_t isa, const AttentionSizes& sizes, Numbers& numbers);

    const AttentionSizes& sizes() const { return sizes_; }
    int64_t tokens() const { return q_.rows(); }
    const Matrix& q() const { return q_; }

    /* Items of at most `queries` queries; with splits > 0 a tile is cut into items of that many splits each. */
    std::vector<tacho_attention_item> items(int32_t queries, int32_t splits = 0) const;

    /* Params for these items; out and scratch are the caller's. */
    tacho_attention_params params(const std::vector<tacho_attention_item>& items) const;

    /* Attention by these items, each item in a call of its own if `singly`. */
    Matrix result(const std::vector<tacho_attention_item>& items, bool singly) const;

    /* The formula, for every query and head. */
    std::vector<std::vector<double>> expected() const;

    /* Element d of key or value `token` of a sequence. Setting one of Q8_0 changes its code alone, to the nearest. */
    double key(int64_t sequence, int64_t token, int64_t head, int64_t d) const;
    double value(int64_t sequence, int64_t token, int64_t head, int64_t d) const;
    void set_key(int64_t sequence, int64_t token, int64_t head, int64_t d, double value) const;
    void set_value(int64_t sequence, int64_t token, int64_t head, int64_t d, double value) const;

  private:
    /* Byte offset of a panel in its cache, and the double that a byte offset and an element of the panel say. */
    int64_t panel(int64_t sequence, int64_t token, int64_t head) const;
    double element(const uint8_t* panel, int64_t element, int64_t scale) const;
    void set_element(uint8_t* panel, int64_t element, int64_t scale, double value) const;

    int32_t isa_;
    AttentionSizes sizes_;
    int64_t stride_;
    int64_t num_blocks_;
    Matrix q_;
    Guarded<int32_t> q_starts_;
    Guarded<int32_t> context_lens_;
    Guarded<int32_t> table_;
    Guarded<float> sinks_;
    Guarded<uint8_t> k_cache_;
    Guarded<uint8_t> v_cache_;
};

}  // namespace tacho_test

#endif
