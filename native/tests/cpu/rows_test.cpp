/* rms_norm, silu_mul, add and softmax. */
#include <cmath>

#include "reference.h"

namespace tacho_test {
namespace {

class RowsTest : public SeededTest {
  protected:
    template <class Params>
    static void set_distance(Params& p, const Matrix& y) {
        p.ldy = y.ld();
    }
    static void set_distance(tacho_rms_norm_params& p, const Matrix& y) {
        p.y_row_bytes = y.ld() * static_cast<int64_t>(sizeof(float));
    }

    /* Runs the kernel in two ranges into y, then each row alone and in place, which must give the same bits. */
    template <class Params>
    void run_rows(int32_t (*kernel)(const Params*, int64_t, int64_t, tacho_counters*), Params p,
                  const float* Params::* input, int64_t Params::* ld, const Matrix& x, const Matrix& y) {
        p.m = x.rows();
        p.n = x.columns();
        p.*input = x.data();
        p.*ld = x.ld();
        p.y = y.data();
        set_distance(p, y);
        run(kernel, p, 0, x.rows() / 2);
        run(kernel, p, x.rows() / 2, x.rows());
        EXPECT_TRUE(y.gaps_intact());
        p.y = x.data();
        set_distance(p, x);
        for (int64_t i = 0; i < x.rows(); ++i) {
            run(kernel, p, i, i + 1);
        }
        EXPECT_TRUE(x.gaps_intact());
        EXPECT_TRUE(x.same(y));
    }
};

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
    run_rows(tacho_rms_norm, p, &tacho_rms_norm_params::x, &tacho_rms_norm_params::ldx, x, y);
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
    p.up = up.data();
    p.ld_up = up.ld();
    run_rows(tacho_silu_mul, p, &tacho_silu_mul_params::gate, &tacho_silu_mul_params::ld_gate, gate, y);
    for (int64_t i = 0; i < y.rows(); ++i) {
        for (int64_t j = 0; j < n; ++j) {
            const auto g = static_cast<double>(original.at(i, j));
            const double expected = g / (1 + std::exp(-g)) * static_cast<double>(up.at(i, j));
            ASSERT_NEAR(expected, static_cast<double>(y.at(i, j)), 5e-7 * std::fabs(expected) + 1e-36) << "gate " << g;
        }
    }
}

TEST_P(RowsTest, Add) {
    Numbers numbers(seed());
    const int64_t n = numbers.between(1, 100);
    const Matrix a = numbers.matrix(numbers.between(1, 6), n);
    const Matrix original = a.clone();
    const Matrix b = numbers.matrix(a.rows(), n);
    const Matrix y(a.rows(), n, n);
    auto p = make<tacho_add_params>(isa());
    p.b = b.data();
    p.ldb = b.ld();
    run_rows(tacho_add, p, &tacho_add_params::a, &tacho_add_params::lda, a, y);
    for (int64_t i = 0; i < y.rows(); ++i) {
        for (int64_t j = 0; j < n; ++j) {
            ASSERT_EQ(original.at(i, j) + b.at(i, j), y.at(i, j));
        }
    }
}

TEST_P(RowsTest, Softmax) {
    Numbers numbers(seed());
    const int64_t n = numbers.between(1, 300);
    const Matrix x = numbers.matrix(numbers.between(1, 6), n);
    numbers.fill(x, numbers.one_of({1.0, 20.0, 200.0}));
    x.at(0, n - 1) = n > 1 ? -INFINITY : x.at(0, n - 1);
    const Matrix original = x.clone();
    const Matrix y(x.rows(), n, n + 7);
    auto p = make<tacho_softmax_params>(isa());
    p.scale = numbers.one_of({1.0f, 0.125f, 3.0f});
    run_rows(tacho_softmax, p, &tacho_softmax_params::x, &tacho_softmax_params::ldx, x, y);
    for (int64_t i = 0; i < y.rows(); ++i) {
        double highest = -INFINITY;
        for (int64_t j = 0; j < n; ++j) {
            highest = std::max(highest, static_cast<double>(original.at(i, j) * p.scale));
        }
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) {
            sum += std::exp(static_cast<double>(original.at(i, j) * p.scale) - highest);
        }
        for (int64_t j = 0; j < n; ++j) {
            const double scaled = static_cast<double>(original.at(i, j) * p.scale) - highest;
            const double expected = std::exp(scaled) / sum;
            /* x - max is rounded before exp: a relative error of half an ulp of it. */
            const double tolerance = expected * (1e-6 + 1e-7 * std::min(200.0, std::fabs(scaled))) + 1e-38;
            ASSERT_NEAR(expected, static_cast<double>(y.at(i, j)), tolerance) << i << ", " << j;
        }
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
        p.ld_gate = p.ld_up = p.ldy = p.n;
        p.gate = gate.data();
        p.up = ones.data();
        p.y = y.data();
        run(tacho_silu_mul, p, 0, 1);
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

TEST_P(ExpTest, SoftmaxOfARowWithNaNIsNaN) {
    std::vector<float> row(40, 1.0f);
    row[21] = NAN;
    auto p = make<tacho_softmax_params>(isa());
    p.m = 1;
    p.n = p.ldx = p.ldy = 40;
    p.x = p.y = row.data();
    p.scale = 1;
    run(tacho_softmax, p, 0, 1);
    for (float value : row) {
        EXPECT_TRUE(std::isnan(value));
    }
}

TACHO_ISA_TESTS(ExpTest);

}  // namespace
}  // namespace tacho_test
