/* weight_pack, matmul and embedding_lookup: all weight types. */
#include <cmath>

#include "reference.h"

namespace tacho_test {
namespace {

/* One matmul with everything it reads and writes in guarded memory. */
struct Product {
    Product(int32_t isa, int32_t dtype, Numbers& numbers, int64_t m, int64_t n, int64_t k, bool with_bias)
        : rows(random_rows(numbers, dtype, n, k)),
          weight(isa, dtype, n, k, rows.data()),
          x(numbers.matrix(m, k)),
          bias(numbers.matrix(1, n)),
          params(make<tacho_matmul_params>(isa)) {
        params.dtype = dtype;
        params.m = m;
        params.n = n;
        params.k = k;
        params.ldx = x.ld();
        params.x = x.data();
        params.w = weight.data();
        params.bias = with_bias ? bias.data() : nullptr;
    }

    int64_t groups() const { return (params.n + 15) / 16; }

    /* The whole product, in calls of `step` groups. */
    Matrix result(int64_t step) const {
        Matrix y(params.m, params.n, params.n + 3);
        tacho_matmul_params p = params;
        p.y = y.data();
        p.ldy = y.ld();
        for (int64_t group = 0; group < groups(); group += step) {
            run(tacho_matmul, p, group, std::min(group + step, groups()));
        }
        EXPECT_TRUE(y.gaps_intact());
        return y;
    }

    std::vector<uint8_t> rows;
    PackedWeight weight;
    Matrix x;
    Matrix bias;
    tacho_matmul_params params;
};

class MatmulTest : public SeededTest {};

TEST_P(MatmulTest, AgreesWithDoublePrecision) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const bool blocks = dtype == TACHO_DTYPE_Q8_0 || dtype == TACHO_DTYPE_Q4_0;
        const int64_t k = blocks ? 32 * numbers.between(1, 20) : numbers.between(1, 600);
        const int64_t n = numbers.between(1, 90);
        const Product product(isa(), dtype, numbers, numbers.between(1, 15), n, k, numbers.between(0, 1) == 1);
        const Matrix y = product.result(product.groups());
        for (int64_t j = 0; j < n; ++j) {
            const std::vector<double> w = row_values(product.rows.data() + j * row_bytes(dtype, k), dtype, k);
            for (int64_t i = 0; i < product.params.m; ++i) {
                double sum = product.params.bias == nullptr ? 0 : static_cast<double>(product.bias.at(0, j));
                double magnitude = std::fabs(sum);
                for (int64_t l = 0; l < k; ++l) {
                    const double term = w[static_cast<size_t>(l)] * static_cast<double>(product.x.at(i, l));
                    sum += term;
                    magnitude += std::fabs(term);
                }
                ASSERT_NEAR(sum, static_cast<double>(y.at(i, j)), 5e-7 * magnitude)
                    << "dtype " << dtype << " m " << product.params.m << " n " << n << " k " << k << " at " << i << ", "
                    << j;
            }
        }
    }
}

TEST_P(MatmulTest, RowsDependNeitherOnTheBatchNorOnTheSplit) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const Product product(isa(), dtype, numbers, numbers.between(2, 15), numbers.between(1, 150), 288, false);
        const Matrix whole = product.result(product.groups());
        EXPECT_TRUE(whole.same(product.result(1)));
        EXPECT_TRUE(whole.same(product.result(3)));
        for (int64_t i = 0; i < product.params.m; ++i) {
            Matrix alone(1, product.params.n, product.params.n);
            tacho_matmul_params p = product.params;
            p.m = 1;
            p.x = product.x.row(i);
            p.y = alone.data();
            p.ldy = alone.ld();
            run(tacho_matmul, p, 0, product.groups());
            ASSERT_TRUE(whole.same_row(i, alone, 0)) << "dtype " << dtype << " row " << i;
        }
    }
}

TEST_P(MatmulTest, NaNStaysInItsRow) {
    Numbers numbers(seed());
    const Product product(isa(), TACHO_DTYPE_Q8_0, numbers, 8, 40, 64, false);
    const Matrix before = product.result(1);
    product.x.at(3, 17) = std::nanf("");
    const Matrix after = product.result(1);
    for (int64_t i = 0; i < 8; ++i) {
        EXPECT_EQ(i != 3, after.same_row(i, before, i)) << "row " << i;
    }
    EXPECT_TRUE(std::isnan(after.at(3, 0)));
}

TEST_P(MatmulTest, WritesTheColumnsOfItsRangeOnly) {
    Numbers numbers(seed());
    const Product product(isa(), TACHO_DTYPE_F16, numbers, 7, 70, 40, true);
    Matrix y(7, 70, 70);
    tacho_matmul_params p = product.params;
    p.y = y.data();
    p.ldy = y.ld();
    run(tacho_matmul, p, 2, 4);
    for (int64_t i = 0; i < 7; ++i) {
        for (int64_t j = 0; j < 70; ++j) {
            EXPECT_EQ(j < 32 || j >= 64, std::isnan(y.at(i, j))) << i << ", " << j;
        }
    }
}

TEST_P(MatmulTest, EmbeddingLookupGivesTheRowsExactly) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const int64_t n = numbers.between(1, 50);
        const int64_t k = 32 * numbers.between(1, 4);
        const std::vector<uint8_t> rows = random_rows(numbers, dtype, n, k);
        const PackedWeight weight(isa(), dtype, n, k, rows.data());
        const Guarded<int32_t> ids(9);
        for (int64_t i = 0; i < ids.count(); ++i) {
            ids[i] = static_cast<int32_t>(numbers.between(0, n - 1));
        }
        const Matrix y(ids.count(), k, k + 2);
        auto p = make<tacho_embedding_lookup_params>(isa());
        p.dtype = dtype;
        p.m = ids.count();
        p.n = n;
        p.k = k;
        p.ldy = y.ld();
        p.ids = ids.data();
        p.w = weight.data();
        p.y = y.data();
        run(tacho_embedding_lookup, p, 0, 4);
        EXPECT_TRUE(std::isnan(y.at(4, 0)));
        run(tacho_embedding_lookup, p, 4, ids.count());
        EXPECT_TRUE(y.gaps_intact());
        for (int64_t i = 0; i < ids.count(); ++i) {
            const std::vector<double> row = row_values(rows.data() + ids[i] * row_bytes(dtype, k), dtype, k);
            for (int64_t j = 0; j < k; ++j) {
                ASSERT_EQ(row[static_cast<size_t>(j)], static_cast<double>(y.at(i, j))) << "dtype " << dtype;
            }
        }
    }
}

TEST_P(MatmulTest, PackingReadsSourcesOfAnyAlignment) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const std::vector<uint8_t> rows = random_rows(numbers, dtype, 20, 64);
        std::vector<uint8_t> shifted(rows.size() + 1);
        std::copy(rows.begin(), rows.end(), shifted.begin() + 1);
        const PackedWeight a(isa(), dtype, 20, 64, rows.data());
        const PackedWeight b(isa(), dtype, 20, 64, shifted.data() + 1);
        int64_t bytes = 0;
        ASSERT_EQ(TACHO_OK, tacho_weight_bytes(isa(), dtype, 20, 64, &bytes));
        EXPECT_EQ(0, std::memcmp(a.data(), b.data(), static_cast<size_t>(bytes))) << "dtype " << dtype;
    }
}

TACHO_SEEDED_TESTS(MatmulTest, 12);

}  // namespace
}  // namespace tacho_test
