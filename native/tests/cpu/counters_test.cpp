/* Counters against a count that walks over every element. */
#include <algorithm>

#include "attention_batch.h"

namespace tacho_test {
namespace {

struct Count {
    int64_t flops = 0;
    int64_t read = 0;
    int64_t write = 0;
};

/* What a call added to counters that were not zero before. */
template <class Params>
Count counted(int32_t (*kernel)(const Params*, int64_t, int64_t, tacho_counters*), const Params& p, int64_t begin,
              int64_t end) {
    tacho_counters counters = {7, 1000, 2000, 3000, 42, {1, 2, 3}};
    EXPECT_EQ(TACHO_OK, kernel(&p, begin, end, &counters)) << last_error();
    EXPECT_EQ(begin == end ? 7 : 8, counters.calls);
    EXPECT_EQ(42, counters.nanos);
    EXPECT_EQ(3, counters.reserved[2]);
    return {counters.flops - 1000, counters.read_bytes - 2000, counters.write_bytes - 3000};
}

void expect_equal(const Count& expected, const Count& actual) {
    EXPECT_EQ(expected.flops, actual.flops);
    EXPECT_EQ(expected.read, actual.read);
    EXPECT_EQ(expected.write, actual.write);
}

class CountersTest : public SeededTest {};

TEST_P(CountersTest, Weights) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const int64_t n = numbers.between(1, 70);
        const int64_t k = block_elements(dtype) == 256 ? 256 : 32 * numbers.between(1, 3);
        const int64_t m = numbers.between(1, 4);
        const int64_t groups = (n + 15) / 16;
        const int64_t begin = numbers.between(0, groups);
        const int64_t end = numbers.between(begin, groups);
        const std::vector<uint8_t> rows = random_rows(numbers, dtype, n, k);
        const PackedWeight weight(isa(), dtype, n, k, rows.data());
        const Matrix x = numbers.matrix(m, k);
        const Matrix y(m, n, n);
        const PackedRows packed(isa(), dtype, x);
        auto p = make<tacho_matmul_params>(isa());
        p.dtype = dtype;
        p.m = m;
        p.n = n;
        p.k = k;
        p.x_row_bytes = packed.row_bytes();
        p.ldy = y.ld();
        p.x = packed.row(0);
        p.w = weight.data();
        p.y = y.data();
        Count product;
        Count pack;
        for (int64_t j = begin * 16; j < end * 16 && j < n; ++j) {
            product.read += row_bytes(dtype, k);
            product.flops += m * 2 * k;
            product.write += m * 4;
            pack.read += row_bytes(dtype, k);
            pack.write += row_bytes(dtype, k);
        }
        product.read += begin == end ? 0 : m * k * 4;
        expect_equal(product, counted(tacho_matmul, p, begin, end));
        p.accumulate = 1;
        product.flops += product.write / 4;
        product.read += product.write;
        expect_equal(product, counted(tacho_matmul, p, begin, end));
        int64_t bytes = 0;
        ASSERT_EQ(TACHO_OK, tacho_weight_bytes(isa(), dtype, n, k, &bytes));
        const Guarded<uint8_t> target(bytes);
        auto q = make<tacho_weight_pack_params>(isa());
        q.dtype = dtype;
        q.n = n;
        q.k = k;
        q.source = rows.data();
        q.packed = target.data();
        expect_equal(pack, counted(tacho_weight_pack, q, begin, end));
        const std::vector<int32_t> ids(static_cast<size_t>(m), 0);
        const Matrix table_rows(m, k, k);
        auto e = make<tacho_embedding_lookup_params>(isa());
        e.dtype = dtype;
        e.m = m;
        e.n = n;
        e.k = k;
        e.ldy = table_rows.ld();
        e.ids = ids.data();
        e.w = weight.data();
        e.y = table_rows.data();
        expect_equal({0, (m - 1) * row_bytes(dtype, k), (m - 1) * 4 * k}, counted(tacho_embedding_lookup, e, 1, m));
    }
}

TEST_P(CountersTest, Rows) {
    Numbers numbers(seed());
    const int64_t m = numbers.between(1, 9);
    const int64_t n = numbers.between(1, 50);
    const int64_t end = numbers.between(0, m);
    const Matrix a = numbers.matrix(m, n);
    const Matrix b = numbers.matrix(m, n);
    const Matrix y(m, n, n);
    Count elements;
    for (int64_t i = 0; i < end * n; ++i) {
        elements.flops += 1;
        elements.read += 4;
        elements.write += 4;
    }
    auto norm = make<tacho_rms_norm_params>(isa());
    norm.m = m;
    norm.n = n;
    norm.y = y.data();
    norm.y_row_bytes = 4 * y.ld();
    norm.x = a.data();
    norm.ldx = a.ld();
    norm.weight = b.data();
    expect_equal({4 * elements.flops, elements.read + (end > 0 ? 4 * n : 0), elements.write},
                 counted(tacho_rms_norm, norm, 0, end));
    auto pack = make<tacho_activation_pack_params>(isa());
    pack.m = m;
    pack.k = n;
    pack.x = a.data();
    pack.ldx = a.ld();
    pack.packed = y.data();
    pack.row_bytes = 4 * y.ld();
    const int64_t blocks = (n + 31) / 32;
    const int64_t columns = std::min(n, 32 * (blocks - 1));
    expect_equal({0, 4 * m * columns, 4 * m * columns}, counted(tacho_activation_pack, pack, 0, blocks - 1));
    expect_equal({0, 4 * m * (n - columns), 4 * m * (n - columns)},
                 counted(tacho_activation_pack, pack, blocks - 1, blocks));
    auto silu = make<tacho_silu_mul_params>(isa());
    silu.m = m;
    silu.n = n;
    silu.y = y.data();
    silu.y_row_bytes = 4 * y.ld();
    silu.gate = a.data();
    silu.ld_gate = a.ld();
    silu.up = b.data();
    silu.ld_up = b.ld();
    const auto gated = [&](int64_t width) { return Count{5 * m * width, 8 * m * width, 4 * m * width}; };
    expect_equal(gated(columns), counted(tacho_silu_mul, silu, 0, blocks - 1));
    expect_equal(gated(n - columns), counted(tacho_silu_mul, silu, blocks - 1, blocks));
}

TEST_P(CountersTest, RopeAndCache) {
    Numbers numbers(seed());
    auto rope = make<tacho_rope_params>(isa());
    rope.num_heads = static_cast<int32_t>(numbers.between(1, 5));
    rope.head_dim = 24;
    rope.rope_dim = static_cast<int32_t>(2 * numbers.between(0, 12));
    rope.num_tokens = numbers.between(1, 6);
    const Matrix x = numbers.matrix(rope.num_tokens, rope.num_heads * rope.head_dim);
    const Matrix cos_sin = numbers.matrix(1, 24 * 6, 0);
    rope.ldx = x.ld();
    rope.x = x.data();
    rope.cos_sin = cos_sin.data();
    Count turned;
    for (int64_t t = 1; t < rope.num_tokens; ++t) {
        for (int64_t pair = 0; pair < rope.rope_dim / 2; ++pair) {
            turned.read += 8;
            for (int64_t head = 0; head < rope.num_heads; ++head) {
                turned.flops += 4 + 2; /* products, sum and difference */
                turned.read += 8;
                turned.write += 8;
            }
        }
    }
    expect_equal(turned, counted(tacho_rope, rope, 1, rope.num_tokens));
    for (int32_t dtype : {TACHO_DTYPE_F32, TACHO_DTYPE_F16, TACHO_DTYPE_BF16, TACHO_DTYPE_Q8_0}) {
        auto p = make<tacho_kv_write_params>(isa());
        p.kv_dtype = dtype;
        p.num_kv_heads = 3;
        p.head_dim = 10;
        p.num_tokens = numbers.between(0, 9);
        p.num_blocks = 1;
        const Matrix k = numbers.matrix(p.num_tokens, 30);
        const Guarded<uint8_t> k_cache(30 * 16 * 4);
        const Guarded<uint8_t> v_cache(30 * 16 * 4);
        std::vector<int64_t> slots;
        Count written;
        for (int64_t t = 0; t < p.num_tokens; ++t) {
            slots.push_back(numbers.between(0, 1) == 0 ? -1 : t);
            if (slots.back() >= 0) {
                written.read += 2 * 10 * (4 + 4);
                written.write += 2 * 2 * kv_head_bytes(dtype, 10);
            }
        }
        p.ldk = p.ldv = k.ld();
        p.slots = slots.data();
        p.k = p.v = k.data();
        p.k_cache = k_cache.data();
        p.v_cache = v_cache.data();
        if (p.num_tokens > 0) {
            expect_equal(written, counted(tacho_kv_write, p, 1, 3));
        } else {
            tacho_counters none = {};
            EXPECT_EQ(TACHO_OK, tacho_kv_write(&p, 1, 3, &none));
            EXPECT_EQ(0, none.calls + none.read_bytes);
        }
    }
    std::vector<uint8_t> cache(40);
    std::vector<void*> caches(3, cache.data());
    const std::vector<int64_t> pairs = {0, 2, 1, 3};
    auto copy = make<tacho_kv_copy_blocks_params>(isa());
    copy.num_caches = 3;
    copy.num_pairs = 2;
    copy.num_blocks = 4;
    copy.block_bytes = 10;
    copy.caches = caches.data();
    copy.pairs = pairs.data();
    expect_equal({0, 50, 50}, counted(tacho_kv_copy_blocks, copy, 1, 6));
}

TEST_P(CountersTest, Attention) {
    Numbers numbers(seed());
    AttentionSizes sizes;
    sizes.kv_dtype = numbers.one_of({TACHO_DTYPE_F32, TACHO_DTYPE_F16, TACHO_DTYPE_Q8_0});
    sizes.num_kv_heads = 2;
    sizes.group = numbers.one_of({1, 3});
    sizes.head_dim = 6;
    sizes.window = numbers.one_of({0, 1, 7, 30, 200});
    for (int s = 0; s < 3; ++s) {
        sizes.queries.push_back(static_cast<int32_t>(numbers.between(1, 50)));
        sizes.contexts.push_back(sizes.queries.back() + static_cast<int32_t>(numbers.one_of({0, 30, 60, 520, 1100})));
    }
    const AttentionBatch batch(isa(), sizes, numbers);
    const auto queries = static_cast<int32_t>(numbers.between(1, 20));
    const std::vector<tacho_attention_item> items = batch.items(queries, numbers.one_of({0, 1, 2}));
    tacho_attention_params p = batch.params(items);
    const Matrix out(batch.tokens(), batch.q().columns(), batch.q().columns());
    ASSERT_EQ(TACHO_OK, tacho_attention_scratch(isa(), p.num_heads, p.num_kv_heads, p.head_dim, &p.scratch_floats));
    const Guarded<float> scratch(p.scratch_floats);
    p.num_partials = 3 * 2 * 50 * 3 * 3;
    p.num_tickets = 3 * 2 * 50;
    const Guarded<float> partials(p.num_partials * 32);
    std::vector<int32_t> tickets(static_cast<size_t>(p.num_tickets));
    p.partials = partials.data();
    p.tickets = tickets.data();
    p.scratch = scratch.data();
    p.out = out.data();
    p.ldo = out.ld();
    const int64_t begin = numbers.between(0, p.num_items);
    Count work;
    for (int64_t i = begin; i < p.num_items; ++i) {
        const tacho_attention_item& item = items[static_cast<size_t>(i)];
        const auto s = static_cast<size_t>(item.sequence);
        std::vector<bool> seen(static_cast<size_t>(sizes.contexts[s]), false);
        for (int64_t query = item.q_begin; query < item.q_end; ++query) {
            const int64_t position = sizes.contexts[s] - sizes.queries[s] + query;
            const int64_t end = std::min<int64_t>(sizes.contexts[s], 512 * item.split_end);
            for (int64_t key = 512 * item.split_begin; key < end; ++key) {
                if (key <= position && (sizes.window == 0 || key > position - sizes.window)) {
                    seen[static_cast<size_t>(key)] = true;
                    work.flops += sizes.group * 2 * 2 * sizes.head_dim;
                }
            }
            work.read += item.split_begin == 0 ? sizes.group * sizes.head_dim * 4 : 0;
            work.write += item.split_begin == 0 ? sizes.group * sizes.head_dim * 4 : 0;
        }
        work.read += std::count(seen.begin(), seen.end(), true) * 2 * kv_head_bytes(sizes.kv_dtype, sizes.head_dim);
    }
    expect_equal(work, counted(tacho_attention, p, begin, p.num_items));
}

TACHO_SEEDED_TESTS(CountersTest, 15);

}  // namespace
}  // namespace tacho_test
