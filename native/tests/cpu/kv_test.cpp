/* kv_write and kv_copy_blocks. */
#include <cmath>
#include <limits>

#include "reference.h"

namespace tacho_test {
namespace {

class KvTest : public SeededTest {};

TEST_P(KvTest, WritesEachElementToItsPlaceAndNothingElse) {
    Numbers numbers(seed());
    for (int32_t dtype : kKvDtypes) {
        auto p = make<tacho_kv_write_params>(isa());
        p.kv_dtype = dtype;
        p.num_kv_heads = static_cast<int32_t>(numbers.between(1, 4));
        p.head_dim = static_cast<int32_t>(2 * numbers.between(1, 40));
        p.num_blocks = numbers.between(2, 5);
        p.num_tokens = numbers.between(1, 12);
        const int64_t columns = p.num_kv_heads * p.head_dim;
        const Matrix k = numbers.matrix(p.num_tokens, columns);
        const Matrix v = numbers.matrix(p.num_tokens, columns);
        const int64_t elements = p.num_blocks * columns * 16;
        const int64_t size = row_bytes(dtype, 1);
        const Guarded<uint8_t> k_cache(elements * size);
        const Guarded<uint8_t> v_cache(elements * size);
        std::vector<uint8_t> k_expected = k_cache.copy();
        std::vector<uint8_t> v_expected = v_cache.copy();
        const Guarded<int64_t> slots(p.num_tokens);
        int64_t slot = numbers.between(0, 9);
        for (int64_t t = 0; t < p.num_tokens; ++t) {
            const bool skipped = numbers.between(0, 4) == 0;
            slots[t] = skipped ? -1 : slot++;
            for (int64_t at = 0; at < columns && !skipped; ++at) {
                const int64_t head = at / p.head_dim;
                const int64_t d = at % p.head_dim;
                const int64_t panel = (slots[t] / 16 * p.num_kv_heads + head) * p.head_dim * 16;
                const int64_t token = slots[t] % 16;
                set_element(k_expected.data(), dtype, panel + d * 16 + token, static_cast<double>(k.at(t, at)));
                set_element(v_expected.data(), dtype, panel + token * p.head_dim + d, static_cast<double>(v.at(t, at)));
            }
        }
        p.ldk = k.ld();
        p.ldv = v.ld();
        p.slots = slots.data();
        p.k = k.data();
        p.v = v.data();
        p.k_cache = k_cache.data();
        p.v_cache = v_cache.data();
        for (int64_t head = p.num_kv_heads; head-- > 0;) {
            run(tacho_kv_write, p, head, head + 1);
        }
        EXPECT_EQ(k_expected, k_cache.copy()) << "dtype " << dtype;
        EXPECT_EQ(v_expected, v_cache.copy()) << "dtype " << dtype;
        EXPECT_TRUE(k_cache.front_intact() && v_cache.front_intact());
    }
}

/* What Q8_0 makes of up to 32 elements. */
struct ScaledGroup {
    uint16_t scale;
    std::vector<int8_t> codes;

    explicit ScaledGroup(const std::vector<float>& x) : scale(0), codes(x.size()) {
        float top = 0;
        bool finite = true;
        for (float element : x) {
            top = std::max(top, std::fabs(element));
            finite = finite && std::isfinite(element);
        }
        const float unit = top / 127;
        scale = finite && unit < 65520 ? nearest_half(static_cast<double>(unit)) : uint16_t{0x7e00};
        for (size_t i = 0; i < x.size() && scale != 0 && scale != 0x7e00; ++i) {
            codes[i] = static_cast<int8_t>(std::nearbyint(x[i] * (1 / unit)));
        }
    }
};

TEST_P(KvTest, WritesCodesAndScalesOfQ8) {
    Numbers numbers(seed());
    auto p = make<tacho_kv_write_params>(isa());
    p.kv_dtype = TACHO_DTYPE_Q8_0;
    p.num_kv_heads = 2;
    p.head_dim = numbers.one_of({2, 16, 30, 32, 34, 64, 80, 112});
    p.num_blocks = 2;
    p.num_tokens = 5;
    const int64_t columns = 2 * p.head_dim;
    const int64_t scales = (p.head_dim + 31) / 32;
    const int64_t panel_bytes = 16 * (p.head_dim + 2 * scales);
    const Matrix k = numbers.matrix(p.num_tokens, columns);
    const Matrix v = numbers.matrix(p.num_tokens, columns);
    /* Denormal scales, no scale at all, what a half cannot hold, and what is no number. */
    const float extremes[] = {1e-6f, 1e-38f, 0.0f, 1e30f, INFINITY, NAN, -INFINITY};
    k.at(1, numbers.between(0, columns - 1)) = extremes[seed() % 7];
    numbers.fill(v, 1e-7);
    const Guarded<uint8_t> k_cache(4 * panel_bytes);
    const Guarded<uint8_t> v_cache(4 * panel_bytes);
    std::vector<uint8_t> k_expected = k_cache.copy();
    std::vector<uint8_t> v_expected = v_cache.copy();
    const std::vector<int64_t> slots = {17, 3, -1, 31, 0};
    const auto expect = [&](const Matrix& x, std::vector<uint8_t>& cache, int64_t t, int64_t head, bool keys) {
        uint8_t* panel = cache.data() + (slots[static_cast<size_t>(t)] / 16 * 2 + head) * panel_bytes;
        const int64_t slot = slots[static_cast<size_t>(t)] % 16;
        for (int64_t group = 0; group < scales; ++group) {
            const float* first = x.row(t) + head * p.head_dim + group * 32;
            const std::vector<float> elements(first, first + std::min<int64_t>(32, p.head_dim - group * 32));
            const ScaledGroup scaled(elements);
            std::memcpy(panel + (group * 16 + slot) * 2, &scaled.scale, 2);
            for (size_t i = 0; i < elements.size(); ++i) {
                const int64_t d = group * 32 + static_cast<int64_t>(i);
                const int64_t at = keys ? d * 16 + slot : slot * p.head_dim + d;
                panel[scales * 32 + at] = static_cast<uint8_t>(scaled.codes[i]);
            }
        }
    };
    for (int64_t t = 0; t < p.num_tokens; ++t) {
        for (int64_t head = 0; head < 2 && slots[static_cast<size_t>(t)] >= 0; ++head) {
            expect(k, k_expected, t, head, true);
            expect(v, v_expected, t, head, false);
        }
    }
    p.ldk = k.ld();
    p.ldv = v.ld();
    p.slots = slots.data();
    p.k = k.data();
    p.v = v.data();
    p.k_cache = k_cache.data();
    p.v_cache = v_cache.data();
    run(tacho_kv_write, p, 0, 2);
    EXPECT_EQ(k_expected, k_cache.copy());
    EXPECT_EQ(v_expected, v_cache.copy());
}

TEST_P(KvTest, CopiesBlocksInEveryCache) {
    Numbers numbers(seed());
    auto p = make<tacho_kv_copy_blocks_params>(isa());
    p.num_caches = numbers.between(1, 4);
    p.num_pairs = numbers.between(1, 3);
    p.num_blocks = 2 * p.num_pairs + numbers.between(0, 3);
    p.block_bytes = numbers.between(1, 200);
    std::vector<Guarded<uint8_t>> caches;
    std::vector<std::vector<uint8_t>> expected;
    std::vector<void*> pointers;
    for (int64_t c = 0; c < p.num_caches; ++c) {
        caches.emplace_back(p.num_blocks * p.block_bytes);
        for (int64_t i = 0; i < caches.back().count(); ++i) {
            caches.back()[i] = static_cast<uint8_t>(numbers.between(0, 255));
        }
        expected.push_back(caches.back().copy());
        pointers.push_back(caches.back().data());
    }
    const Guarded<int64_t> pairs(2 * p.num_pairs);
    for (int64_t i = 0; i < p.num_pairs; ++i) {
        pairs[2 * i] = i;
        pairs[2 * i + 1] = p.num_blocks - 1 - i;
        for (std::vector<uint8_t>& cache : expected) {
            std::copy_n(cache.begin() + pairs[2 * i] * p.block_bytes, p.block_bytes,
                        cache.begin() + pairs[2 * i + 1] * p.block_bytes);
        }
    }
    p.caches = pointers.data();
    p.pairs = pairs.data();
    const int64_t items = p.num_caches * p.num_pairs;
    run(tacho_kv_copy_blocks, p, items / 2, items);
    run(tacho_kv_copy_blocks, p, 0, items / 2);
    for (int64_t c = 0; c < p.num_caches; ++c) {
        EXPECT_EQ(expected[static_cast<size_t>(c)], caches[static_cast<size_t>(c)].copy()) << "cache " << c;
    }
}

TACHO_SEEDED_TESTS(KvTest, 12);

class NarrowingTest : public IsaTest {
  protected:
    /* Elements after a trip through a cache of `dtype`: K of one head of 16 elements in slot 3. */
    std::vector<uint16_t> narrow(int32_t dtype, const std::vector<float>& values) const {
        const auto tokens = static_cast<int64_t>(values.size() / 16);
        std::vector<int64_t> slots;
        for (int64_t t = 0; t < tokens; ++t) {
            slots.push_back(t);
        }
        auto p = make<tacho_kv_write_params>(isa());
        p.kv_dtype = dtype;
        p.num_kv_heads = 1;
        p.head_dim = 16;
        p.num_tokens = tokens;
        p.num_blocks = (tokens + 15) / 16;
        p.ldk = p.ldv = 16;
        std::vector<uint16_t> k_cache(static_cast<size_t>(p.num_blocks * 256));
        std::vector<uint16_t> v_cache(k_cache.size());
        p.slots = slots.data();
        p.k = p.v = values.data();
        p.k_cache = k_cache.data();
        p.v_cache = v_cache.data();
        run(tacho_kv_write, p, 0, 1);
        v_cache.resize(values.size());
        return v_cache;
    }
};

TEST_P(NarrowingTest, RoundsToNearestEvenEverywhere) {
    std::vector<float> values;
    Numbers numbers(5);
    for (uint32_t upper = 0; upper < 0x7f80; ++upper) {
        for (const uint32_t lower : {0x0000u, 0x1000u, 0x7fffu, 0x8000u, 0x8001u, 0xefffu, 0xffffu}) {
            const uint32_t bits = upper << 16 | lower | (numbers.between(0, 1) == 1 ? 0x80000000u : 0u);
            float value;
            std::memcpy(&value, &bits, sizeof value);
            values.push_back(value);
        }
    }
    values.resize(values.size() / 16 * 16);
    const std::vector<uint16_t> halves = narrow(TACHO_DTYPE_F16, values);
    const std::vector<uint16_t> bfloats = narrow(TACHO_DTYPE_BF16, values);
    for (size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<double>(values[i]);
        ASSERT_EQ(nearest_half(value), halves[i]) << value;
        if (std::fabs(value) < 3.3e38) {
            ASSERT_EQ(nearest_bfloat(value), bfloats[i]) << value;
        }
    }
}

TEST_P(NarrowingTest, KeepsInfinityAndNaN) {
    std::vector<float> values(16, 0.0f);
    values[0] = std::numeric_limits<float>::infinity();
    values[1] = -std::numeric_limits<float>::infinity();
    values[2] = std::nanf("");
    const uint32_t signalling = 0x7f800001;
    std::memcpy(&values[3], &signalling, sizeof signalling);
    const std::vector<uint16_t> halves = narrow(TACHO_DTYPE_F16, values);
    const std::vector<uint16_t> bfloats = narrow(TACHO_DTYPE_BF16, values);
    EXPECT_EQ(0x7c00, halves[0]);
    EXPECT_EQ(0xfc00, halves[1]);
    EXPECT_TRUE(std::isnan(half_value(halves[2])) && std::isnan(half_value(halves[3])));
    EXPECT_EQ(0x7f80, bfloats[0]);
    EXPECT_EQ(0xff80, bfloats[1]);
    EXPECT_TRUE(std::isnan(bfloat_value(bfloats[2])) && std::isnan(bfloat_value(bfloats[3])));
}

TACHO_ISA_TESTS(NarrowingTest);

}  // namespace
}  // namespace tacho_test
