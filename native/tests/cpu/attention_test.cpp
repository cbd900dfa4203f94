/* attention over the paged cache. */
#include <algorithm>
#include <cmath>

#include "attention_batch.h"

namespace tacho_test {
namespace {

void expect_near(const std::vector<std::vector<double>>& expected, const Matrix& out, double tolerance = 4e-6) {
    for (int64_t i = 0; i < out.rows(); ++i) {
        for (int64_t j = 0; j < out.columns(); ++j) {
            const double wanted = expected[static_cast<size_t>(i)][static_cast<size_t>(j)];
            ASSERT_NEAR(wanted, static_cast<double>(out.at(i, j)), tolerance) << "query " << i << " element " << j;
        }
    }
}

/* Prefill from nothing, a later chunk, decodes: mixed, in random order. */
AttentionSizes random_sizes(Numbers& numbers) {
    AttentionSizes sizes;
    sizes.kv_dtype = numbers.one_of({TACHO_DTYPE_F32, TACHO_DTYPE_F16, TACHO_DTYPE_BF16, TACHO_DTYPE_Q8_0});
    sizes.num_kv_heads = static_cast<int32_t>(numbers.between(1, 3));
    sizes.group = numbers.one_of({1, 3, 4, 8});
    sizes.head_dim = numbers.one_of({2, 10, 32, 36, 48, 64, 80});
    sizes.window = numbers.one_of({0, 0, 1, 5, 16, 17, 40, 100});
    sizes.softcap = numbers.one_of({0.0f, 0.0f, 2.0f, 30.0f});
    sizes.sinks = numbers.between(0, 2) == 0;
    for (int64_t s = numbers.between(1, 4); s > 0; --s) {
        const auto queries = static_cast<int32_t>(numbers.between(0, 1) == 0 ? 1 : numbers.between(1, 40));
        const auto before = static_cast<int32_t>(numbers.one_of({0, 1, 15, 40, 150, 500, 511, 512, 1100}));
        sizes.queries.push_back(queries);
        sizes.contexts.push_back(before + queries);
    }
    return sizes;
}

class AttentionTest : public SeededTest {};

TEST_P(AttentionTest, AgreesWithDoublePrecision) {
    Numbers numbers(seed());
    const AttentionBatch batch(isa(), random_sizes(numbers), numbers);
    expect_near(batch.expected(), batch.result(batch.items(32), false));
}

TEST_P(AttentionTest, SplittingItemsChangesNoBit) {
    Numbers numbers(seed() + 100);
    const AttentionBatch batch(isa(), random_sizes(numbers), numbers);
    const Matrix out = batch.result(batch.items(1000), false);
    EXPECT_TRUE(out.same(batch.result(batch.items(1), true)));
    EXPECT_TRUE(out.same(batch.result(batch.items(7), false)));
    EXPECT_TRUE(out.same(batch.result(batch.items(32), true)));
    EXPECT_TRUE(out.same(batch.result(batch.items(32, 1), true)));
    EXPECT_TRUE(out.same(batch.result(batch.items(5, 2), false)));
}

TEST_P(AttentionTest, TheItemThatComesLastMergesInTheSameOrder) {
    Numbers numbers(seed() + 300);
    AttentionSizes sizes = random_sizes(numbers);
    sizes.queries.push_back(2);
    sizes.contexts.push_back(1600);
    const AttentionBatch batch(isa(), sizes, numbers);
    const Matrix out = batch.result(batch.items(32), false);
    std::vector<tacho_attention_item> items = batch.items(32, 1);
    std::reverse(items.begin(), items.end());
    EXPECT_TRUE(out.same(batch.result(items, true)));
    for (size_t i = items.size(); i > 1; --i) {
        std::swap(items[i - 1], items[static_cast<size_t>(numbers.between(0, static_cast<int64_t>(i) - 1))]);
    }
    EXPECT_TRUE(out.same(batch.result(items, true)));
}

TEST_P(AttentionTest, AQueryDependsOnNothingAfterItAndOnNoOtherSequence) {
    Numbers numbers(seed() + 200);
    AttentionSizes sizes = random_sizes(numbers);
    sizes.queries.push_back(20);
    sizes.contexts.push_back(33);
    const AttentionBatch batch(isa(), sizes, numbers);
    const Matrix before = batch.result(batch.items(32), false);
    /* Poison every token but the first sequence's, and in the last sequence from its query 10 on. */
    const int64_t last = static_cast<int64_t>(sizes.queries.size()) - 1;
    for (int64_t s = 0; s <= last; ++s) {
        const int64_t from = s == last ? 33 - 20 + 10 : s == 0 ? sizes.contexts[0] : 0;
        for (int64_t token = from; token < sizes.contexts[static_cast<size_t>(s)]; ++token) {
            for (int64_t head = 0; head < sizes.num_kv_heads; ++head) {
                for (int64_t d = 0; d < sizes.head_dim; ++d) {
                    batch.set_key(s, token, head, d, token % 2 == 0 ? 1e30 : -1e30);
                    batch.set_value(s, token, head, d, 1e30);
                }
            }
        }
    }
    const Matrix after = batch.result(batch.items(32), false);
    for (int64_t i = 0; i < sizes.queries[0]; ++i) {
        EXPECT_TRUE(after.same_row(i, before, i)) << "query " << i << " of the first sequence";
    }
    for (int64_t i = 0; i < 10; ++i) {
        const int64_t row = batch.tokens() - 20 + i;
        EXPECT_TRUE(after.same_row(row, before, row)) << "query " << i << " of the last sequence";
    }
}

TACHO_SEEDED_TESTS(AttentionTest, 40);

class AttentionEdgeTest : public IsaTest {};

TEST_P(AttentionEdgeTest, BlockAndChunkBorders) {
    for (int32_t context : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 193, 511, 512, 513, 640, 1025}) {
        for (int32_t window : {0, 1, 16, 17, 63, 64, 65, 128, 129, 512, 513}) {
            Numbers numbers(static_cast<uint64_t>(context * 100 + window));
            AttentionSizes sizes;
            sizes.group = 2;
            sizes.window = window;
            sizes.queries = {1, std::min(context, 3)};
            sizes.contexts = {context, context};
            const AttentionBatch batch(isa(), sizes, numbers);
            expect_near(batch.expected(), batch.result(batch.items(32), false));
        }
    }
}

TEST_P(AttentionEdgeTest, LargeHeads) {
    for (int32_t head_dim : {128, 256, 510, 512}) {
        for (int32_t dtype : {TACHO_DTYPE_F32, TACHO_DTYPE_F16, TACHO_DTYPE_BF16, TACHO_DTYPE_Q8_0}) {
            Numbers numbers(static_cast<uint64_t>(head_dim));
            AttentionSizes sizes;
            sizes.kv_dtype = dtype;
            sizes.head_dim = head_dim;
            sizes.group = 4;
            sizes.num_kv_heads = 2;
            sizes.queries = {1, 9};
            sizes.contexts = {70, 20};
            const AttentionBatch batch(isa(), sizes, numbers);
            expect_near(batch.expected(), batch.result(batch.items(32), false));
        }
    }
}

TEST_P(AttentionEdgeTest, ChunkedPrefillGivesTheBitsOfOnePiece) {
    AttentionSizes sizes;
    sizes.group = 3;
    sizes.head_dim = 48;
    sizes.queries = {100};
    sizes.contexts = {100};
    Numbers numbers(1);
    const AttentionBatch whole(isa(), sizes, numbers);
    const Matrix all = whole.result(whole.items(32), false);
    for (int32_t done = 0; done < 100; done += 25) {
        sizes.queries = {25};
        sizes.contexts = {done + 25};
        Numbers other(2);
        const AttentionBatch chunk(isa(), sizes, other);
        for (int64_t i = 0; i < 25; ++i) {
            std::copy_n(whole.q().row(done + i), whole.q().columns(), chunk.q().row(i));
        }
        for (int64_t token = 0; token < done + 25; ++token) {
            for (int64_t d = 0; d < 48; ++d) {
                chunk.set_key(0, token, 0, d, whole.key(0, token, 0, d));
                chunk.set_value(0, token, 0, d, whole.value(0, token, 0, d));
            }
        }
        const Matrix part = chunk.result(chunk.items(32), false);
        for (int64_t i = 0; i < 25; ++i) {
            EXPECT_TRUE(part.same_row(i, all, done + i)) << "query " << done + i;
        }
    }
}

TEST_P(AttentionEdgeTest, ExtremeScores) {
    AttentionSizes sizes;
    sizes.head_dim = 16;
    sizes.queries = {3};
    sizes.contexts = {90};
    Numbers numbers(3);
    const AttentionBatch batch(isa(), sizes, numbers);
    numbers.fill(batch.q(), 100);
    /* Scores of several hundred have an absolute error of 1e-5, which is the relative one of their exp. */
    expect_near(batch.expected(), batch.result(batch.items(32), false), 2e-4);
}

TEST_P(AttentionEdgeTest, KeysWithAScoreOfMinusInfinityCountNothing) {
    AttentionSizes sizes;
    sizes.head_dim = 16;
    sizes.queries = {2};
    sizes.contexts = {80};
    Numbers numbers(5);
    const AttentionBatch batch(isa(), sizes, numbers);
    for (int64_t i = 0; i < 2; ++i) {
        batch.q().at(i, 3) = 1;
    }
    /* All of the first chunk of keys, and one of the second. */
    for (int64_t token = 0; token < 80; ++token) {
        if (token < 64 || token == 70) {
            batch.set_key(0, token, 0, 3, -INFINITY);
        }
    }
    expect_near(batch.expected(), batch.result(batch.items(32), false));
}

TEST_P(AttentionEdgeTest, NaNOfAVisibleKeyReachesItsQueriesOnly) {
    AttentionSizes sizes;
    sizes.head_dim = 16;
    sizes.queries = {6};
    sizes.contexts = {30};
    Numbers numbers(4);
    const AttentionBatch batch(isa(), sizes, numbers);
    const Matrix before = batch.result(batch.items(32), false);
    batch.set_key(0, 27, 0, 5, NAN);
    const Matrix after = batch.result(batch.items(32), false);
    for (int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(i < 3, after.same_row(i, before, i)) << "query " << i;
        EXPECT_EQ(i >= 3, std::isnan(after.at(i, 0))) << "query " << i;
    }
}

TACHO_ISA_TESTS(AttentionEdgeTest);

}  // namespace
}  // namespace tacho_test
