/* rms_norm and silu_mul. */
#include <cmath>

#include "reference.h"

namespace tacho_test {
namespace {

class RowsTest : public SeededTest {};

TEST_P(RowsTest, RmsNorm) {
    Numbers numbers(seed());
    const int64_t n = numbers.between(1, 200);
    const Matrix x = numbers.matrix(numbers.between(1, 6), n);
    const Matrix original = x.clone();
    const Matrix weight = numbers.matrix(1, n);
    const Matrix y(x.rows(), n, n + 1);
    auto p = make<tacho_rms_norm_params>(isa());
    p.weight = weight.data();
    p.epsilon = numbers.one_of({0.0f, 1e-5f, 0.5f});
    p.m = x.rows();
    p.n = n;
    p.x = x.data();
    p.ldx = x.ld();
    p.y = y.data();
    p.y_row_bytes = 4 * y.ld();
    run(tacho_rms_norm, p, 0, x.rows() / 2);
    run(tacho_rms_norm, p, x.rows() / 2, x.rows());
    EXPECT_TRUE(y.gaps_intact());
    /* Each row alone and in place gives the same bits. */
    p.y = x.data();
    p.y_row_bytes = 4 * x.ld();
    for (int64_t i = 0; i < x.rows(); ++i) {
        run(tacho_rms_norm, p, i, i + 1);
    }
    EXPECT_TRUE(x.gaps_intact());
    EXPECT_TRUE(x.same(y));
    for (int64_t i = 0; i < y.rows(); ++i) {
        double squares = 0;
        for (int64_t j = 0; j < n; ++j) {
            squares += std::pow(static_cast<double>(original.at(i, j)), 2);
        }
        const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(p.epsilon));
        for (int64_t j = 0; j < n; ++j) {
            const double expected =
                static_cast<double>(original.at(i, j)) * factor * static_cast<double>(weight.at(0, j));
            ASSERT_NEAR(expected, static_cast<double>(y.at(i, j)), 5e-7 * std::fabs(expected)) << i << ", " << j;
        }
    }
}

TEST_P(RowsTest, RmsNormWritesWhatPackingItWouldGive) {
    Numbers numbers(seed());
    for (int32_t dtype : {TACHO_DTYPE_Q8_0, TACHO_DTYPE_BF16, TACHO_DTYPE_F32}) {
        const int64_t n = dtype == TACHO_DTYPE_Q8_0 ? 32 * numbers.between(1, 8) : numbers.between(1, 200);
        const Matrix x = numbers.matrix(3, n);
        const Matrix weight = numbers.matrix(1, n);
        const Matrix normed(3, n, n);
        auto p = make<tacho_rms_norm_params>(isa());
        p.m = 3;
        p.n = n;
        p.x = x.data();
        p.ldx = x.ld();
        p.weight = weight.data();
        p.y = normed.data();
        p.y_row_bytes = 4 * n;
        run(tacho_rms_norm, p, 0, 3);
        const PackedRows packed(isa(), dtype, normed);
        const Guarded<uint8_t> direct(3 * packed.row_bytes());
        p.format = packed.format();
        p.y = direct.data();
        p.y_row_bytes = packed.row_bytes();
        run(tacho_rms_norm, p, 0, 3);
        EXPECT_EQ(0, std::memcmp(direct.data(), packed.row(0), static_cast<size_t>(direct.bytes())));
        EXPECT_TRUE(direct.front_intact());
    }
}

TEST_P(RowsTest, SiluMul) {
    Numbers numbers(seed());
    const int64_t n = numbers.between(1, 100);
    const Matrix gate = numbers.matrix(numbers.between(1, 6), n);
    numbers.fill(gate, numbers.one_of({0.01, 1.0, 10.0, 60.0}));
    const Matrix original = gate.clone();
    const Matrix up = numbers.matrix(gate.rows(), n);
    const Matrix y(gate.rows(), n, n + 4);
    auto p = make<tacho_silu_mul_params>(isa());
    p.m = gate.rows();
    p.n = n;
    p.gate = gate.data();
    p.ld_gate = gate.ld();
    p.up = up.data();
    p.ld_up = up.ld();
    p.y = y.data();
    p.y_row_bytes = 4 * y.ld();
    const int64_t blocks = (n + 31) / 32;
    run(tacho_silu_mul, p, 0, blocks / 2);
    run(tacho_silu_mul, p, blocks / 2, blocks);
    EXPECT_TRUE(y.gaps_intact());
    /* Each block alone and in place gives the same bits. */
    p.y = gate.data();
    p.y_row_bytes = 4 * gate.ld();
    for (int64_t block = 0; block < blocks; ++block) {
        run(tacho_silu_mul, p, block, block + 1);
    }
    EXPECT_TRUE(gate.gaps_intact());
    EXPECT_TRUE(gate.same(y));
    for (int64_t i = 0; i < y.rows(); ++i) {
        for (int64_t j = 0; j < n; ++j) {
            const auto g = static_cast<double>(original.at(i, j));
            const double expected = g / (1 + std::exp(-g)) * static_cast<double>(up.at(i, j));
            ASSERT_NEAR(expected, static_cast<double>(y.at(i, j)), 5e-7 * std::fabs(expected) + 1e-36) << "gate " << g;
        }
    }
}

TEST_P(RowsTest, SiluMulWritesWhatPackingItWouldGive) {
    Numbers numbers(seed());
    for (int32_t dtype : {TACHO_DTYPE_Q8_0, TACHO_DTYPE_BF16, TACHO_DTYPE_F32}) {
        const int64_t n = dtype == TACHO_DTYPE_Q8_0 ? 32 * numbers.between(1, 8) : numbers.between(1, 200);
        const Matrix gate = numbers.matrix(3, n);
        const Matrix up = numbers.matrix(3, n);
        const Matrix product(3, n, n);
        auto p = make<tacho_silu_mul_params>(isa());
        p.m = 3;
        p.n = n;
        p.gate = gate.data();
        p.ld_gate = gate.ld();
        p.up = up.data();
        p.ld_up = up.ld();
        p.y = product.data();
        p.y_row_bytes = 4 * n;
        const int64_t blocks = (n + 31) / 32;
        run(tacho_silu_mul, p, 0, blocks);
        const PackedRows packed(isa(), dtype, product);
        const Guarded<uint8_t> direct(3 * packed.row_bytes());
        p.format = packed.format();
        p.y = direct.data();
        p.y_row_bytes = packed.row_bytes();
        run(tacho_silu_mul, p, blocks / 2, blocks);
        run(tacho_silu_mul, p, 0, blocks / 2);
        EXPECT_EQ(0, std::memcmp(direct.data(), packed.row(0), static_cast<size_t>(direct.bytes())));
        EXPECT_TRUE(direct.front_intact());
    }
}

TACHO_SEEDED_TESTS(RowsTest, 20);

class ExpTest : public IsaTest {
  protected:
    /* e^x as the kernels have it, through silu: g / (1 + e^-g) * up with g = -x. */
    std::vector<float> silu(const std::vector<float>& gate) const {
        const std::vector<float> ones(gate.size(), 1.0f);
        std::vector<float> y(gate.size());
        auto p = make<tacho_silu_mul_params>(isa());
        p.m = 1;
        p.n = static_cast<int64_t>(gate.size());
        p.ld_gate = p.ld_up = p.n;
        p.y_row_bytes = 4 * p.n;
        p.gate = gate.data();
        p.up = ones.data();
        p.y = y.data();
        run(tacho_silu_mul, p, 0, (p.n + 31) / 32);
        return y;
    }
};

TEST_P(ExpTest, SiluIsRightOverTheWholeRange) {
    std::vector<float> gate;
    for (int i = -8800; i <= 20000; ++i) {
        gate.push_back(static_cast<float>(i) * 0.01f);
    }
    const std::vector<float> y = silu(gate);
    for (size_t i = 0; i < gate.size(); ++i) {
        const auto g = static_cast<double>(gate[i]);
        const double expected = g / (1 + std::exp(-g));
        ASSERT_NEAR(expected, static_cast<double>(y[i]), 4e-7 * std::fabs(expected) + 1e-42) << "gate " << g;
    }
}

TEST_P(ExpTest, SiluOfExtremes) {
    const std::vector<float> y = silu({-1e30f, -104.5f, -0.0f, 1e30f, INFINITY, NAN, 0.0f, 1e-30f});
    EXPECT_EQ(0.0f, y[0]);
    EXPECT_NEAR(0.0f, y[1], 1e-40f);
    EXPECT_EQ(0.0f, y[2]);
    EXPECT_EQ(1e30f, y[3]);
    EXPECT_EQ(INFINITY, y[4]);
    EXPECT_TRUE(std::isnan(y[5]));
    EXPECT_EQ(0.0f, y[6]);
    EXPECT_EQ(0.5e-30f, y[7]);
}

TACHO_ISA_TESTS(ExpTest);

}  // namespace
}  // namespace tacho_test
