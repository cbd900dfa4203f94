/* Block formats against values and dot products made with ggml (quants_cases.py). */
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

#include "reference.h"

namespace tacho_test {
namespace {

struct Case {
    std::string name;
    int32_t dtype = 0;
    int64_t n = 0;
    double dot = 0;
    double dot_abs = 0;
    std::vector<uint8_t> blocks;
    std::vector<float> values;
};

struct Cases {
    std::map<int64_t, std::vector<float>> activations;
    std::vector<Case> cases;
};

/* Takes fields off the front of a file. */
class Reader {
  public:
    explicit Reader(const std::string& path) {
        std::ifstream file(path, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }

    bool done() const { return at_ == bytes_.size(); }
    template <class T>
    T take() {
        T value;
        copy(&value, sizeof value);
        return value;
    }
    template <class T>
    std::vector<T> take(int64_t count) {
        std::vector<T> values(static_cast<size_t>(count));
        copy(values.data(), values.size() * sizeof(T));
        return values;
    }

  private:
    void copy(void* to, size_t count) {
        if (bytes_.size() - at_ < count) {
            ADD_FAILURE() << "quants_cases.bin ends at " << bytes_.size();
            std::abort();
        }
        std::memcpy(to, bytes_.data() + at_, count);
        at_ += count;
    }

    std::vector<char> bytes_;
    size_t at_ = 0;
};

Cases read_cases() {
    Cases result;
    Reader reader(TACHO_TEST_DATA "/quants_cases.bin");
    const std::vector<char> magic = reader.take<char>(4);
    EXPECT_EQ("TQC1", std::string(magic.begin(), magic.end()));
    while (!reader.done()) {
        if (reader.take<char>() == 'A') {
            const auto n = reader.take<int32_t>();
            result.activations[n] = reader.take<float>(n);
            continue;
        }
        Case c;
        c.dtype = reader.take<int32_t>();
        c.n = reader.take<int32_t>();
        const auto bytes = reader.take<int32_t>();
        c.dot = reader.take<double>();
        c.dot_abs = reader.take<double>();
        const std::vector<char> name = reader.take<char>(reader.take<uint8_t>());
        c.name.assign(name.begin(), name.end());
        c.blocks = reader.take<uint8_t>(bytes);
        c.values = reader.take<float>(c.n);
        result.cases.push_back(c);
    }
    return result;
}

class QuantsTest : public IsaTest {
  protected:
    const Cases cases = read_cases();
};

TEST_P(QuantsTest, ValuesAreExact) {
    ASSERT_EQ(67u, cases.cases.size());
    for (const Case& c : cases.cases) {
        ASSERT_EQ(row_bytes(c.dtype, c.n), static_cast<int64_t>(c.blocks.size())) << c.name;
        const PackedWeight weight(isa(), c.dtype, 1, c.n, c.blocks.data());
        std::vector<float> y(static_cast<size_t>(c.n));
        const int32_t id = 0;
        auto p = make<tacho_embedding_lookup_params>(isa());
        p.dtype = c.dtype;
        p.m = p.n = 1;
        p.k = p.ldy = c.n;
        p.ids = &id;
        p.w = weight.data();
        p.y = y.data();
        run(tacho_embedding_lookup, p, 0, 1);
        for (size_t i = 0; i < y.size(); ++i) {
            /* The products of a K type are rounded in an order of their own. */
            const bool products = c.dtype == TACHO_DTYPE_Q4_K || c.dtype == TACHO_DTYPE_Q6_K;
            ASSERT_NEAR(c.values[i], y[i], products ? 3e-7f * std::fabs(c.values[i]) : 0) << c.name << " element " << i;
        }
    }
}

TEST_P(QuantsTest, DotProductsAreWithinRounding) {
    for (const Case& c : cases.cases) {
        if (c.dot_abs > 3e38) {
            continue; /* beyond what a float sum can hold */
        }
        const PackedWeight weight(isa(), c.dtype, 1, c.n, c.blocks.data());
        const std::vector<float>& activations = cases.activations.at(c.n);
        const Matrix x(1, c.n, c.n);
        std::copy(activations.begin(), activations.end(), x.data());
        const PackedRows packed(isa(), c.dtype, x);
        const std::vector<double> w = row_values(c.blocks.data(), c.dtype, c.n);
        double dot = 0;
        for (int64_t j = 0; j < c.n; ++j) {
            dot += w[static_cast<size_t>(j)] * packed.value(0, j);
        }
        float y = NAN;
        auto p = make<tacho_matmul_params>(isa());
        p.dtype = c.dtype;
        p.m = p.n = p.ldy = 1;
        p.k = c.n;
        p.x_row_bytes = packed.row_bytes();
        p.x = packed.row(0);
        p.w = weight.data();
        p.y = &y;
        run(tacho_matmul, p, 0, 1);
        /* Instructions for bfloats take denormal floats for 0. */
        const double denormal =
            packed.format() == TACHO_ACTIVATION_BF16 ? static_cast<double>(c.n) * 1.2e-38 : 1e-43;
        EXPECT_NEAR(dot, static_cast<double>(y), 1e-6 * c.dot_abs + denormal) << c.name;
        /* What the rounding of the activations costs. */
        const double rounding = packed.format() == TACHO_ACTIVATION_F32 ? 1e-6 : 2e-2;
        EXPECT_NEAR(c.dot, static_cast<double>(y), rounding * c.dot_abs + denormal) << c.name;
    }
}

TACHO_ISA_TESTS(QuantsTest);

}  // namespace
}  // namespace tacho_test
