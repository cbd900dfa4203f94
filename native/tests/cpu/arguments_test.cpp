/* Wrong arguments: TACHO_EINVAL or TACHO_EUNSUPPORTED, words that name the field, and nothing written. */
#include <cmath>
#include <functional>

#include "attention_batch.h"

namespace tacho_test {
namespace {

/* One wrong argument: what is done to the params, and what the words must contain. */
template <class Params>
struct Fault {
    const char* words;
    std::function<void(Params&)> spoil;
    int32_t status = TACHO_EINVAL;
};

template <class Params>
using Kernel = int32_t (*)(const Params*, int64_t, int64_t, tacho_counters*);

template <class Params>
void expect_refused(Kernel<Params> kernel, const Params& p, int64_t begin, int64_t end, int32_t status,
                    const std::string& words) {
    tacho_counters counters = {};
    EXPECT_EQ(status, kernel(&p, begin, end, &counters)) << "expected: " << words;
    EXPECT_NE(std::string::npos, last_error().find(words)) << last_error() << ", expected: " << words;
    EXPECT_EQ(0, counters.calls);
}

/* Every fault alone, and those that all operations share. `good` has `items` items. */
template <class Params>
void expect_faults(const char* operation, Kernel<Params> kernel, const Params& good, int64_t items,
                   const std::vector<Fault<Params>>& faults) {
    ASSERT_EQ(TACHO_OK, kernel(&good, 0, 0, nullptr)) << last_error();
    for (const Fault<Params>& fault : faults) {
        Params p = good;
        fault.spoil(p);
        expect_refused(kernel, p, 0, 0 < items ? 1 : 0, fault.status, fault.words);
        EXPECT_EQ(0u, last_error().find(operation)) << last_error();
    }
    Params p = good;
    p.struct_size -= 4;
    expect_refused(kernel, p, 0, 1, TACHO_EINVAL, "struct_size is ");
    p = good;
    p.isa = 9;
    expect_refused(kernel, p, 0, 1, TACHO_EINVAL, "isa is 9");
    expect_refused(kernel, good, -1, 1, TACHO_EINVAL, "range is [-1, 1)");
    expect_refused(kernel, good, 1, 0, TACHO_EINVAL, "range is [1, 0)");
    expect_refused(kernel, good, 0, items + 1, TACHO_EINVAL, "must lie within [0, " + std::to_string(items) + ")");
    EXPECT_EQ(TACHO_EINVAL, kernel(nullptr, 0, 1, nullptr));
    EXPECT_NE(std::string::npos, last_error().find("params is NULL")) << last_error();
}

class ArgumentsTest : public IsaTest {
  protected:
    /* Never read or written: every call is refused. */
    alignas(8) float data[64] = {};
    const float* misaligned() const {
        return reinterpret_cast<const float*>(reinterpret_cast<const uint8_t*>(data) + 2);
    }
};

TEST_P(ArgumentsTest, Matmul) {
    auto good = make<tacho_matmul_params>(isa());
    good.m = 2;
    good.n = 20;
    good.k = 64;
    good.x_row_bytes = 256;
    good.ldy = 20;
    good.x = good.bias = data;
    good.w = data;
    good.y = data;
    expect_faults<tacho_matmul_params>(
        "matmul", tacho_matmul, good, 2,
        {{"m is -1", [](auto& p) { p.m = -1; }},
         {"n is 0", [](auto& p) { p.n = 0; }},
         {"k is 0", [](auto& p) { p.k = 0; }},
         {"k is 40, must be a multiple", [](auto& p) { p.k = 40, p.dtype = TACHO_DTYPE_Q8_0; }},
         {"dtype is 3", [](auto& p) { p.dtype = 3; }, TACHO_EUNSUPPORTED},
         {"x_row_bytes is 252, must be at least the bytes of a row = 256", [](auto& p) { p.x_row_bytes = 252; }},
         {"x_row_bytes is 258, must be a multiple", [](auto& p) { p.x_row_bytes = 258; }},
         {"accumulate is 2", [](auto& p) { p.accumulate = 2; }},
         {"ldy is 19, must be at least n = 20", [](auto& p) { p.ldy = 19; }},
         {"n is 4294967296", [](auto& p) { p.n = p.ldy = int64_t{1} << 32; }},
         {"n * k is 2147483647 * 2147483647", [](auto& p) { p.n = p.k = p.ldy = INT32_MAX; }},
         {"x is NULL", [](auto& p) { p.x = nullptr; }},
         {"w is NULL", [](auto& p) { p.w = nullptr; }},
         {"y is NULL", [](auto& p) { p.y = nullptr; }},
         {"must be aligned to 4 bytes", [this](auto& p) { p.x = misaligned(); }},
         {"bias is at", [this](auto& p) { p.bias = misaligned(); }}});
}

TEST_P(ArgumentsTest, Activations) {
    auto good = make<tacho_activation_pack_params>(isa());
    good.format = TACHO_ACTIVATION_INT8;
    good.m = 2;
    good.k = good.ldx = 64;
    good.row_bytes = activation_bytes(isa(), TACHO_ACTIVATION_INT8, 64);
    good.x = data;
    good.packed = data;
    expect_faults<tacho_activation_pack_params>(
        "activation_pack", tacho_activation_pack, good, 2,
        {{"m is -1", [](auto& p) { p.m = -1; }},
         {"k is 0", [](auto& p) { p.k = 0; }},
         {"k is 63, must be a multiple", [](auto& p) { p.k = 63; }},
         {"format is -1", [](auto& p) { p.format = -1; }},
         {"ldx is 63, must be at least k = 64", [](auto& p) { p.ldx = 63; }},
         {"row_bytes is 64, must be at least", [](auto& p) { p.row_bytes = 64; }},
         {"x is NULL", [](auto& p) { p.x = nullptr; }},
         {"packed is NULL", [](auto& p) { p.packed = nullptr; }}});
    int64_t bytes = -5;
    EXPECT_EQ(TACHO_EINVAL, tacho_activation_bytes(isa(), TACHO_ACTIVATION_INT8, 63, &bytes));
    EXPECT_EQ(TACHO_EINVAL, tacho_activation_bytes(isa(), 3, 64, &bytes));
    EXPECT_EQ(TACHO_EINVAL, tacho_activation_bytes(isa(), TACHO_ACTIVATION_F32, 64, nullptr));
    EXPECT_EQ(-5, bytes);
    int32_t format = -5;
    EXPECT_EQ(TACHO_EUNSUPPORTED, tacho_activation_format(isa(), 13, &format));
    EXPECT_EQ(TACHO_EINVAL, tacho_activation_format(isa(), TACHO_DTYPE_Q8_0, nullptr));
    EXPECT_EQ(-5, format);
}

TEST_P(ArgumentsTest, Weights) {
    auto pack = make<tacho_weight_pack_params>(isa());
    pack.n = 17;
    pack.k = 32;
    pack.dtype = TACHO_DTYPE_Q4_0;
    pack.source = data;
    pack.packed = data;
    expect_faults<tacho_weight_pack_params>("weight_pack", tacho_weight_pack, pack, 2,
                                            {{"n is 0", [](auto& p) { p.n = 0; }},
                                             {"k is 33", [](auto& p) { p.k = 33; }},
                                             {"dtype is 13", [](auto& p) { p.dtype = 13; }, TACHO_EUNSUPPORTED},
                                             {"source is NULL", [](auto& p) { p.source = nullptr; }},
                                             {"packed is NULL", [](auto& p) { p.packed = nullptr; }}});
    const std::vector<int32_t> ids = {0, 4};
    auto lookup = make<tacho_embedding_lookup_params>(isa());
    lookup.m = 2;
    lookup.n = 4;
    lookup.k = lookup.ldy = 8;
    lookup.ids = ids.data();
    lookup.w = data;
    lookup.y = data;
    expect_faults<tacho_embedding_lookup_params>("embedding_lookup", tacho_embedding_lookup, lookup, 2,
                                                 {{"m is -3", [](auto& p) { p.m = -3; }},
                                                  {"ldy is 7", [](auto& p) { p.ldy = 7; }},
                                                  {"ids is NULL", [](auto& p) { p.ids = nullptr; }},
                                                  {"w is NULL", [](auto& p) { p.w = nullptr; }},
                                                  {"y is NULL", [](auto& p) { p.y = nullptr; }}});
    expect_refused(tacho_embedding_lookup, lookup, 0, 2, TACHO_EINVAL, "ids[1] is 4, must be in [0, n = 4)");
    int64_t bytes = -5;
    EXPECT_EQ(TACHO_EINVAL, tacho_weight_bytes(isa(), TACHO_DTYPE_F32, 4, 8, nullptr));
    EXPECT_EQ(TACHO_EINVAL, tacho_weight_bytes(isa(), TACHO_DTYPE_Q4_0, 4, 8, &bytes));
    EXPECT_EQ(TACHO_EUNSUPPORTED, tacho_weight_bytes(isa(), 13, 4, 8, &bytes));
    EXPECT_EQ(-5, bytes);
}

TEST_P(ArgumentsTest, Rows) {
    auto norm = make<tacho_rms_norm_params>(isa());
    norm.m = 2;
    norm.n = norm.ldx = 8;
    norm.y_row_bytes = 32;
    norm.x = norm.weight = data;
    norm.y = data;
    expect_faults<tacho_rms_norm_params>("rms_norm", tacho_rms_norm, norm, 2,
                                         {{"m is -1", [](auto& p) { p.m = -1; }},
                                          {"n is 0", [](auto& p) { p.n = 0; }},
                                          {"ldx is 7", [](auto& p) { p.ldx = 7; }},
                                          {"y_row_bytes is 28", [](auto& p) { p.y_row_bytes = 28; }},
                                          {"format is 3", [](auto& p) { p.format = 3; }},
                                          {"n is 8, must be a multiple", [](auto& p) { p.format = 1; }},
                                          {"x is NULL", [](auto& p) { p.x = nullptr; }},
                                          {"weight is NULL", [](auto& p) { p.weight = nullptr; }},
                                          {"y is NULL", [](auto& p) { p.y = nullptr; }},
                                          {"epsilon is nan", [](auto& p) { p.epsilon = NAN; }},
                                          {"epsilon is -1", [](auto& p) { p.epsilon = -1; }}});
    auto silu = make<tacho_silu_mul_params>(isa());
    silu.m = 2;
    silu.n = silu.ld_gate = silu.ld_up = 8;
    silu.y_row_bytes = 32;
    silu.gate = silu.up = data;
    silu.y = data;
    expect_faults<tacho_silu_mul_params>("silu_mul", tacho_silu_mul, silu, 1,
                                         {{"ld_gate is 7", [](auto& p) { p.ld_gate = 7; }},
                                          {"ld_up is 7", [](auto& p) { p.ld_up = 7; }},
                                          {"y_row_bytes is 28", [](auto& p) { p.y_row_bytes = 28; }},
                                          {"format is 3", [](auto& p) { p.format = 3; }},
                                          {"n is 8, must be a multiple", [](auto& p) { p.format = 1; }},
                                          {"gate is NULL", [](auto& p) { p.gate = nullptr; }},
                                          {"up is at", [this](auto& p) { p.up = misaligned(); }},
                                          {"up is NULL", [](auto& p) { p.up = nullptr; }},
                                          {"y is NULL", [](auto& p) { p.y = nullptr; }}});
}

TEST_P(ArgumentsTest, RopeAndCache) {
    auto rope = make<tacho_rope_params>(isa());
    rope.num_heads = 2;
    rope.head_dim = 8;
    rope.rope_dim = 6;
    rope.num_tokens = 2;
    rope.ldx = 16;
    rope.cos_sin = data;
    rope.x = data;
    expect_faults<tacho_rope_params>("rope", tacho_rope, rope, 2,
                                     {{"pairing is 2", [](auto& p) { p.pairing = 2; }},
                                      {"num_heads is 0", [](auto& p) { p.num_heads = 0; }},
                                      {"rope_dim is 10", [](auto& p) { p.rope_dim = 10; }},
                                      {"rope_dim is 5", [](auto& p) { p.rope_dim = 5; }},
                                      {"num_tokens is -1", [](auto& p) { p.num_tokens = -1; }},
                                      {"ldx is 15", [](auto& p) { p.ldx = 15; }},
                                      {"cos_sin is NULL", [](auto& p) { p.cos_sin = nullptr; }},
                                      {"x is NULL", [](auto& p) { p.x = nullptr; }}});
    const std::vector<int64_t> slots = {31, 32, -2};
    auto write = make<tacho_kv_write_params>(isa());
    write.num_kv_heads = 2;
    write.head_dim = 4;
    write.num_tokens = 1;
    write.num_blocks = 2;
    write.ldk = write.ldv = 8;
    write.slots = slots.data();
    write.k = write.v = data;
    write.k_cache = write.v_cache = data;
    expect_faults<tacho_kv_write_params>(
        "kv_write", tacho_kv_write, write, 2,
        {{"kv_dtype is 2", [](auto& p) { p.kv_dtype = TACHO_DTYPE_Q4_0; }, TACHO_EUNSUPPORTED},
         {"num_kv_heads is 0", [](auto& p) { p.num_kv_heads = 0; }},
         {"head_dim is 3", [](auto& p) { p.head_dim = 3; }},
         {"head_dim is 514", [](auto& p) { p.head_dim = 514; }},
         {"num_blocks is 0", [](auto& p) { p.num_blocks = 0; }},
         {"ldk is 7", [](auto& p) { p.ldk = 7; }},
         {"ldv is 7", [](auto& p) { p.ldv = 7; }},
         {"slots is NULL", [](auto& p) { p.slots = nullptr; }},
         {"slots[1] is 32, must be -1 or in [0, num_blocks * 16 = 32)", [](auto& p) { p.num_tokens = 2; }},
         {"slots[0] is -2", [&](auto& p) { p.slots = slots.data() + 2; }},
         {"k_cache is NULL", [](auto& p) { p.k_cache = nullptr; }},
         {"v_cache is NULL", [](auto& p) { p.v_cache = nullptr; }}});
    void* caches[] = {data, nullptr};
    const std::vector<int64_t> pairs = {0, 1, 2, 2, -1, 3};
    auto copy = make<tacho_kv_copy_blocks_params>(isa());
    copy.num_caches = 1;
    copy.num_pairs = 1;
    copy.num_blocks = 4;
    copy.block_bytes = 8;
    copy.caches = caches;
    copy.pairs = pairs.data();
    expect_faults<tacho_kv_copy_blocks_params>(
        "kv_copy_blocks", tacho_kv_copy_blocks, copy, 1,
        {{"num_caches is -1", [](auto& p) { p.num_caches = -1; }},
         {"block_bytes is 0", [](auto& p) { p.block_bytes = 0; }},
         {"caches is NULL", [](auto& p) { p.caches = nullptr; }},
         {"caches[0] is NULL", [&](auto& p) { p.caches = caches + 1; }},
         {"pairs is NULL", [](auto& p) { p.pairs = nullptr; }},
         {"pairs[1] is 1, must be in [0, num_blocks = 1)", [](auto& p) { p.num_blocks = 1; }},
         {"pairs[0] and pairs[1] are the same block", [&](auto& p) { p.pairs = pairs.data() + 2; }},
         {"pairs[0] is -1", [&](auto& p) { p.pairs = pairs.data() + 4; }}});
}

TEST_P(ArgumentsTest, Attention) {
    AttentionSizes sizes;
    sizes.group = 2;
    sizes.head_dim = 8;
    sizes.queries = {3, 1};
    sizes.contexts = {20, 40};
    Numbers numbers(1);
    const AttentionBatch batch(isa(), sizes, numbers);
    const std::vector<tacho_attention_item> items = batch.items(32);
    tacho_attention_params good = batch.params(items);
    Matrix out(4, 16, 16);
    std::vector<float> scratch;
    ASSERT_EQ(TACHO_OK, tacho_attention_scratch(isa(), 2, 1, 8, &good.scratch_floats));
    scratch.resize(static_cast<size_t>(good.scratch_floats));
    good.out = out.data();
    good.ldo = 16;
    good.scratch = scratch.data();
    const std::vector<int32_t> falling = {0, 5, 3};
    const std::vector<int32_t> short_lens = {2, 40};
    const std::vector<int32_t> long_lens = {65, 40};
    std::vector<int32_t> bad_table(static_cast<size_t>(2 * good.block_table_stride), 99);
    std::vector<int32_t> bad_end(good.block_table, good.block_table + good.block_table_stride);
    bad_end[1] = -1;
    int32_t tickets[1] = {0};
    std::vector<tacho_attention_item> other(items);
    const auto item = [&other](tacho_attention_item wrong) {
        return [&other, wrong](auto& p) {
            other[0] = wrong;
            p.items = other.data();
        };
    };
    expect_faults<tacho_attention_params>(
        "attention", tacho_attention, good, 2,
        {{"kv_dtype is 2", [](auto& p) { p.kv_dtype = TACHO_DTYPE_Q4_0; }, TACHO_EUNSUPPORTED},
         {"num_heads is 3, must be a multiple", [](auto& p) { p.num_heads = 3, p.num_kv_heads = 2; }},
         {"head_dim is 7", [](auto& p) { p.head_dim = 7; }},
         {"window is -1", [](auto& p) { p.window = -1; }},
         {"scale is nan", [](auto& p) { p.scale = NAN; }},
         {"softcap is -1", [](auto& p) { p.softcap = -1; }},
         {"num_items is -1", [](auto& p) { p.num_items = -1; }},
         {"ldq is 15", [](auto& p) { p.ldq = 15; }},
         {"ldo is 15", [](auto& p) { p.ldo = 15; }},
         {"q is NULL", [](auto& p) { p.q = nullptr; }},
         {"out is NULL", [](auto& p) { p.out = nullptr; }},
         {"q_starts is NULL", [](auto& p) { p.q_starts = nullptr; }},
         {"context_lens is NULL", [](auto& p) { p.context_lens = nullptr; }},
         {"block_table is NULL", [](auto& p) { p.block_table = nullptr; }},
         {"items is NULL", [](auto& p) { p.items = nullptr; }},
         {"scratch is NULL", [](auto& p) { p.scratch = nullptr; }},
         {"scratch_floats is", [](auto& p) { p.scratch_floats -= 1; }},
         {"q_starts[0] to q_starts[1] is 5 to 3", [&](auto& p) { p.q_starts = falling.data() + 1; }},
         {"context_lens[0] is 2, must be at least", [&](auto& p) { p.context_lens = short_lens.data(); }},
         {"context_lens[0] is 65, must fit", [&](auto& p) { p.context_lens = long_lens.data(); }},
         {"block_table[0][0] is 99", [&](auto& p) { p.block_table = bad_table.data(); }},
         {"block_table[0][1] is -1", [&](auto& p) { p.block_table = bad_end.data(); }},
         {"items[0].sequence is 2", item({2, 0, 0, 1, 0, 1, -1, 0})},
         {"items[0].kv_head is -1", item({0, -1, 0, 1, 0, 1, -1, 0})},
         {"items[0] has queries 2 to 4", item({0, 0, 2, 4, 0, 1, -1, 0})},
         {"items[0] has queries 2 to 1", item({0, 0, 2, 1, 0, 1, -1, 0})},
         {"items[0] has splits 0 to 2, must be a range within the 1", item({0, 0, 0, 1, 0, 2, -1, 0})},
         {"items[0] has splits 1 to 1", item({0, 0, 0, 1, 1, 1, -1, 0})},
         {"items[0] has splits -1 to 1", item({0, 0, 0, 1, -1, 1, -1, 0})},
         {"items[0].partial is -2", item({0, 0, 0, 1, 0, 1, -2, 0})},
         {"items[0].partial is 0, must leave room for 2 rows of num_partials = 0", item({0, 0, 0, 1, 0, 1, 0, 0})},
         {"items[0].partial is 4, must leave room",
          [&](auto& p) {
              item({0, 0, 0, 1, 0, 1, 4, 0})(p);
              p.num_partials = 5;
              p.partials = data;
          }},
         {"items[0].ticket is 1, must be in [0, num_tickets = 1)",
          [&](auto& p) {
              item({0, 0, 0, 1, 0, 1, 0, 1})(p);
              p.num_partials = 5;
              p.partials = data;
              p.num_tickets = 1;
              p.tickets = tickets;
          }},
         {"partials is NULL", [](auto& p) { p.num_partials = 1; }},
         {"tickets is NULL", [](auto& p) { p.num_tickets = 1; }}});
    EXPECT_TRUE(std::isnan(out.at(0, 0)));
    int64_t floats = 0;
    EXPECT_EQ(TACHO_EINVAL, tacho_attention_scratch(isa(), 3, 2, 8, &floats));
    EXPECT_EQ(TACHO_EINVAL, tacho_attention_scratch(isa(), 2, 1, 8, nullptr));
}

TEST_P(ArgumentsTest, NothingToDoIsNoFault) {
    auto p = make<tacho_matmul_params>(isa());
    p.n = p.ldy = 20;
    p.k = 4;
    p.x_row_bytes = 16;
    p.w = data;
    tacho_counters counters = {};
    EXPECT_EQ(TACHO_OK, tacho_matmul(&p, 0, 2, &counters)) << last_error();
    EXPECT_EQ(0, counters.calls);
    auto norm = make<tacho_rms_norm_params>(isa());
    norm.n = norm.ldx = 4;
    norm.y_row_bytes = 16;
    norm.weight = data;
    EXPECT_EQ(TACHO_OK, tacho_rms_norm(&norm, 0, 0, &counters)) << last_error();
    const auto attention = make<tacho_attention_params>(isa());
    EXPECT_EQ(TACHO_EINVAL, tacho_attention(&attention, 0, 0, &counters));
}

TACHO_ISA_TESTS(ArgumentsTest);

}  // namespace
}  // namespace tacho_test
