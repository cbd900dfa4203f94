/* rope: both pairings. */
#include <cmath>

#include "reference.h"

namespace tacho_test {
namespace {

class RopeTest : public SeededTest {};

TEST_P(RopeTest, TurnsPairsAndLeavesTheRest) {
    Numbers numbers(seed());
    for (int32_t pairing : {TACHO_ROPE_ADJACENT, TACHO_ROPE_HALVES}) {
        auto p = make<tacho_rope_params>(isa());
        p.pairing = pairing;
        p.num_heads = static_cast<int32_t>(numbers.between(1, 4));
        p.head_dim = static_cast<int32_t>(2 * numbers.between(1, 64));
        p.rope_dim = static_cast<int32_t>(2 * numbers.between(0, p.head_dim / 2));
        p.num_tokens = numbers.between(1, 5);
        const Matrix x = numbers.matrix(p.num_tokens, p.num_heads * p.head_dim);
        const Matrix original = x.clone();
        const Matrix again = x.clone();
        const Guarded<float> cos_sin(p.num_tokens * p.rope_dim);
        for (int64_t i = 0; i < cos_sin.count(); i += 2) {
            const double angle = numbers.uniform(-4, 4);
            cos_sin[i] = static_cast<float>(std::cos(angle));
            cos_sin[i + 1] = static_cast<float>(std::sin(angle));
        }
        p.cos_sin = cos_sin.data();
        p.x = x.data();
        p.ldx = x.ld();
        run(tacho_rope, p, 0, p.num_tokens);
        EXPECT_TRUE(x.gaps_intact());
        p.x = again.data();
        p.ldx = again.ld();
        for (int64_t t = p.num_tokens - 1; t >= 0; --t) {
            run(tacho_rope, p, t, t + 1);
        }
        EXPECT_TRUE(x.same(again));
        for (int64_t t = 0; t < p.num_tokens; ++t) {
            for (int64_t at = 0; at < x.columns(); ++at) {
                const int64_t head = at / p.head_dim * p.head_dim;
                const int64_t i = at % p.head_dim;
                if (i >= p.rope_dim) {
                    ASSERT_EQ(original.at(t, at), x.at(t, at));
                    continue;
                }
                const bool adjacent = pairing == TACHO_ROPE_ADJACENT;
                const int64_t half = p.rope_dim / 2;
                const int64_t pair = adjacent ? i / 2 : i % half;
                const bool second = adjacent ? i % 2 == 1 : i >= half;
                const int64_t first_at = head + (adjacent ? 2 * pair : pair);
                const int64_t second_at = first_at + (adjacent ? 1 : half);
                const auto a = static_cast<double>(original.at(t, first_at));
                const auto b = static_cast<double>(original.at(t, second_at));
                const auto cos = static_cast<double>(cos_sin[t * p.rope_dim + 2 * pair]);
                const auto sin = static_cast<double>(cos_sin[t * p.rope_dim + 2 * pair + 1]);
                const double expected = second ? a * sin + b * cos : a * cos - b * sin;
                ASSERT_NEAR(expected, static_cast<double>(x.at(t, at)), 3e-7 * (std::fabs(a) + std::fabs(b)))
                    << "pairing " << pairing << " head_dim " << p.head_dim << " rope_dim " << p.rope_dim;
            }
        }
    }
}

TACHO_SEEDED_TESTS(RopeTest, 20);

}  // namespace
}  // namespace tacho_test
