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
          packed(isa, dtype, x),
          bias(numbers.matrix(1, n)),
          params(make<tacho_matmul_params>(isa)) {
        params.dtype = dtype;
        params.m = m;
        params.n = n;
        params.k = k;
        params.x_row_bytes = packed.row_bytes();
        params.x = packed.row(0);
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

    /* One row of it, multiplied with nothing beside it. */
    Matrix row_alone(int64_t row) const {
        Matrix y(1, params.n, params.n);
        tacho_matmul_params p = params;
        p.m = 1;
        p.x = packed.row(row);
        p.y = y.data();
        p.ldy = y.ld();
        run(tacho_matmul, p, 0, groups());
        return y;
    }

    std::vector<uint8_t> rows;
    PackedWeight weight;
    Matrix x;
    PackedRows packed;
    Matrix bias;
    tacho_matmul_params params;
};

class MatmulTest : public SeededTest {};

constexpr int32_t kCodeDtypes[] = {TACHO_DTYPE_Q8_0, TACHO_DTYPE_Q4_0, TACHO_DTYPE_Q4_K, TACHO_DTYPE_Q6_K};

int64_t larger_block(int32_t dtype) {
    return std::max(block_elements(dtype), int64_t{32});
}

TEST_P(MatmulTest, AgreesWithDoublePrecision) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const int64_t block = block_elements(dtype);
        const int64_t k = block * numbers.between(1, block == 256 ? 3 : block == 32 ? 20 : 600);
        const int64_t n = numbers.between(1, 90);
        const Product product(isa(), dtype, numbers, numbers.between(1, 15), n, k, numbers.between(0, 1) == 1);
        const Matrix y = product.result(product.groups());
        for (int64_t j = 0; j < n; ++j) {
            const std::vector<double> w = row_values(product.rows.data() + j * row_bytes(dtype, k), dtype, k);
            for (int64_t i = 0; i < product.params.m; ++i) {
                double sum = product.params.bias == nullptr ? 0 : static_cast<double>(product.bias.at(0, j));
                double magnitude = std::fabs(sum);
                for (int64_t l = 0; l < k; ++l) {
                    const double term = w[static_cast<size_t>(l)] * product.packed.value(i, l);
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
        const Product product(isa(), dtype, numbers, numbers.between(2, 15), numbers.between(1, 150), block_elements(dtype) == 256 ? 512 : 288,
                              false);
        const Matrix whole = product.result(product.groups());
        EXPECT_TRUE(whole.same(product.result(1)));
        EXPECT_TRUE(whole.same(product.result(3)));
        for (int64_t i = 0; i < product.params.m; ++i) {
            const Matrix alone = product.row_alone(i);
            ASSERT_TRUE(whole.same_row(i, alone, 0)) << "dtype " << dtype << " row " << i;
        }
    }
}

/* Sizes around those at which rows are cut differently or weights are unpacked first; a third of the types for each seed. */
TEST_P(MatmulTest, RowsAreTheSameInBatchesOfEverySize) {
    Numbers numbers(seed());
    for (size_t type = seed() % 3; type < std::size(kWeightDtypes); type += 3) {
        const int32_t dtype = kWeightDtypes[type];
        const Product product(isa(), dtype, numbers, 513, 20, 768, false);
        Matrix alone(513, 20, 20);
        tacho_matmul_params p = product.params;
        p.m = 1;
        p.ldy = alone.ld();
        for (int64_t i = 0; i < 513; ++i) {
            p.x = product.packed.row(i);
            p.y = alone.row(i);
            run(tacho_matmul, p, 0, product.groups());
        }
        for (int64_t m : {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 17, 23, 24, 25, 47, 48, 49, 95, 96, 97, 127, 128, 511, 512, 513}) {
            Matrix y(m, 20, 20);
            p.m = m;
            p.x = product.packed.row(0);
            p.y = y.data();
            run(tacho_matmul, p, 0, product.groups());
            for (int64_t i = 0; i < m; ++i) {
                ASSERT_TRUE(y.same_row(i, alone, i)) << "dtype " << dtype << " row " << i << " of " << m;
            }
        }
    }
}

/* Rows that tiles are cut from in every way, k beside the end of a run, panels that fill no last tile. */
TEST_P(MatmulTest, ManyRowsAreSummedAsOneRowIs) {
    Numbers numbers(seed());
    const int64_t m = std::vector<int64_t>{17, 23, 25, 127, 128, 129, 257, 512, 513}[static_cast<size_t>(seed() % 9)];
    for (int32_t dtype : kWeightDtypes) {
        const int64_t k = block_elements(dtype) == 1 ? 256 * numbers.between(0, 2) + numbers.between(1, 2) : 256;
        const Product product(isa(), dtype, numbers, m, numbers.between(1, 150), k, numbers.between(0, 1) == 1);
        const Matrix whole = product.result(product.groups());
        EXPECT_TRUE(whole.same(product.result(3)));
        for (int64_t i : {int64_t{0}, int64_t{4}, int64_t{5}, m / 2 - 1, m / 2, m - 2, m - 1}) {
            const Matrix alone = product.row_alone(i);
            ASSERT_TRUE(whole.same_row(i, alone, 0))
                << "dtype " << dtype << " m " << m << " n " << product.params.n << " k " << k << " row " << i;
        }
    }
}

TEST_P(MatmulTest, AddsToWhatIsThere) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const int64_t m = numbers.between(0, 1) == 1 ? 7 : 27;
        const Product product(isa(), dtype, numbers, m, 37, 512, true);
        const Matrix y = product.result(1);
        const Matrix before = numbers.matrix(m, 37);
        const Matrix after = before.clone();
        tacho_matmul_params p = product.params;
        p.accumulate = 1;
        p.y = after.data();
        p.ldy = after.ld();
        run(tacho_matmul, p, 0, product.groups());
        for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < 37; ++j) {
                ASSERT_EQ(before.at(i, j) + y.at(i, j), after.at(i, j)) << "dtype " << dtype;
            }
        }
    }
}

TEST_P(MatmulTest, CodesOfActivationsAreThoseOfTheContract) {
    Numbers numbers(seed());
    const Matrix x = numbers.matrix(5, 96);
    for (int64_t j = 0; j < 32; ++j) {
        x.at(1, j) = 0;
        x.at(2, j) = static_cast<float>(j) * 1e-39f;
        x.at(3, j) = static_cast<float>(j - 16) + 0.5f; /* scale 1: ties */
    }
    x.at(3, 0) = 127;
    const PackedRows packed(isa(), TACHO_DTYPE_Q8_0, x);
    for (int64_t i = 0; i < 5; ++i) {
        for (int64_t first = 0; first < 96; first += 32) {
            float largest = 0;
            for (int64_t j = first; j < first + 32; ++j) {
                largest = std::max(largest, std::fabs(x.at(i, j)));
            }
            const bool tiny = largest < 0x1p-119f;
            EXPECT_EQ(tiny ? 0 : largest / 127, packed.scale(i, first));
            for (int64_t j = first; j < first + 32; ++j) {
                const float expected = tiny ? 0 : std::nearbyint(x.at(i, j) * (127 / largest));
                ASSERT_EQ(expected, static_cast<float>(packed.code(i, j))) << i << ", " << j;
            }
        }
    }
}

TEST_P(MatmulTest, WhatIsNotFiniteStaysInItsRowAndIsNeverANumber) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const int64_t m = numbers.between(0, 1) == 1 ? 8 : 25;
        const Product product(isa(), dtype, numbers, m, 40, 512, false);
        const Matrix before = product.result(1);
        for (float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
            product.x.at(3, 17) = bad;
            const PackedRows packed(isa(), dtype, product.x);
            tacho_matmul_params p = product.params;
            const Matrix after(m, 40, 40);
            p.x = packed.row(0);
            p.y = after.data();
            p.ldy = after.ld();
            run(tacho_matmul, p, 0, product.groups());
            for (int64_t i = 0; i < m; ++i) {
                EXPECT_EQ(i != 3, after.same_row(i, before, i)) << "dtype " << dtype << " row " << i;
            }
            for (int64_t j = 0; j < 40; ++j) {
                EXPECT_FALSE(std::isfinite(after.at(3, j))) << "dtype " << dtype;
            }
        }
    }
}

/* Every partial sum at its largest: what a lane of 16 bits has to hold. */
TEST_P(MatmulTest, ExtremeCodesAreSummedExactly) {
    for (int32_t dtype : kCodeDtypes) {
        const int64_t k = block_elements(dtype);
        for (int filling : {0x00, 0x80, 0x7f, 0xff}) {
            std::vector<uint8_t> row(static_cast<size_t>(row_bytes(dtype, k)), static_cast<uint8_t>(filling));
            const size_t scale = dtype == TACHO_DTYPE_Q6_K ? 208 : 0;
            row[scale] = 0;
            row[scale + 1] = 0x3c; /* 1 */
            if (dtype == TACHO_DTYPE_Q4_K) {
                row[2] = row[3] = 0;
            }
            const PackedWeight weight(isa(), dtype, 1, k, row.data());
            const std::vector<double> w = row_values(row.data(), dtype, k);
            for (float sign : {1.0f, -1.0f}) {
                /* So many rows that weights are unpacked first. */
                constexpr int64_t m = 25;
                const Matrix x(m, k, k);
                double expected = 0;
                for (int64_t j = 0; j < k; ++j) {
                    for (int64_t i = 0; i < m; ++i) {
                        x.at(i, j) = 127 * sign;
                    }
                    expected += w[static_cast<size_t>(j)] * static_cast<double>(x.at(0, j));
                }
                const PackedRows packed(isa(), dtype, x);
                const Matrix y(m, 1, 1);
                auto p = make<tacho_matmul_params>(isa());
                p.dtype = dtype;
                p.n = p.ldy = 1;
                p.k = k;
                p.x_row_bytes = packed.row_bytes();
                p.x = packed.row(0);
                p.w = weight.data();
                p.y = y.data();
                for (int64_t rows : {int64_t{1}, m}) {
                    p.m = rows;
                    run(tacho_matmul, p, 0, 1);
                    EXPECT_EQ(static_cast<float>(expected), y.at(rows - 1, 0))
                        << "dtype " << dtype << " filling " << filling << " rows " << rows;
                }
            }
        }
    }
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
        const int64_t k = larger_block(dtype) * numbers.between(1, 4);
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
                const double value = row[static_cast<size_t>(j)];
                /* A difference of products is rounded twice. */
                const double slack = dtype == TACHO_DTYPE_Q4_K ? 1e-6 * (std::fabs(value) + 1) : 0;
                ASSERT_NEAR(value, static_cast<double>(y.at(i, j)), slack) << "dtype " << dtype;
            }
        }
    }
}

TEST_P(MatmulTest, PackingReadsSourcesOfAnyAlignment) {
    Numbers numbers(seed());
    for (int32_t dtype : kWeightDtypes) {
        const std::vector<uint8_t> rows = random_rows(numbers, dtype, 20, 256);
        std::vector<uint8_t> shifted(rows.size() + 1);
        std::copy(rows.begin(), rows.end(), shifted.begin() + 1);
        const PackedWeight a(isa(), dtype, 20, 256, rows.data());
        const PackedWeight b(isa(), dtype, 20, 256, shifted.data() + 1);
        int64_t bytes = 0;
        ASSERT_EQ(TACHO_OK, tacho_weight_bytes(isa(), dtype, 20, 256, &bytes));
        EXPECT_EQ(0, std::memcmp(a.data(), b.data(), static_cast<size_t>(bytes))) << "dtype " << dtype;
    }
}

/* Weights as bfloats, and whether they come back from a packed matrix with all their bits. */
class BFloats {
public:
    BFloats(int64_t n, int64_t k) : n_(n), k_(k), bits_(static_cast<size_t>(n * k)) {}

    uint16_t& at(int64_t row, int64_t k) { return bits_[static_cast<size_t>(row * k_ + k)]; }

    /* Of normal numbers of one size. */
    void fill(Numbers& numbers) {
        for (uint16_t& bits : bits_) {
            bits = nearest_bfloat(numbers.normal());
        }
    }

    void expect_kept(int32_t isa) const {
        const PackedWeight weight(isa, TACHO_DTYPE_BF16, n_, k_, reinterpret_cast<const uint8_t*>(bits_.data()));
        const Guarded<int32_t> ids(n_);
        for (int64_t i = 0; i < n_; ++i) {
            ids[i] = static_cast<int32_t>(i);
        }
        const Matrix y(n_, k_, k_);
        auto p = make<tacho_embedding_lookup_params>(isa);
        p.dtype = TACHO_DTYPE_BF16;
        p.m = p.n = n_;
        p.k = p.ldy = k_;
        p.ids = ids.data();
        p.w = weight.data();
        p.y = y.data();
        run(tacho_embedding_lookup, p, 0, n_);
        for (int64_t row = 0; row < n_; ++row) {
            for (int64_t k = 0; k < k_; ++k) {
                uint32_t bits;
                std::memcpy(&bits, &y.at(row, k), sizeof bits);
                ASSERT_EQ(uint32_t{bits_[static_cast<size_t>(row * k_ + k)]} << 16, bits) << row << ", " << k;
            }
        }
        expect_multiplied(isa, weight);
    }

private:
    /* Rows of x that are 1 at one k give the weights of that k, if all are finite. */
    void expect_multiplied(int32_t isa, const PackedWeight& weight) const {
        for (uint16_t bits : bits_) {
            if ((bits & 0x7f80) == 0x7f80) {
                return;
            }
        }
        const Matrix x(k_, k_, k_);
        for (int64_t i = 0; i < k_; ++i) {
            for (int64_t j = 0; j < k_; ++j) {
                x.at(i, j) = i == j ? 1 : 0;
            }
        }
        const PackedRows packed(isa, TACHO_DTYPE_BF16, x);
        for (int64_t m : {int64_t{1}, int64_t{2}, int64_t{7}, k_}) {
            const Matrix y(m, n_, n_);
            auto p = make<tacho_matmul_params>(isa);
            p.dtype = TACHO_DTYPE_BF16;
            p.m = m;
            p.n = p.ldy = n_;
            p.k = k_;
            p.x_row_bytes = packed.row_bytes();
            p.x = packed.row(k_ - m);
            p.w = weight.data();
            p.y = y.data();
            run(tacho_matmul, p, 0, (n_ + 15) / 16);
            for (int64_t i = 0; i < m; ++i) {
                for (int64_t row = 0; row < n_; ++row) {
                    const int64_t k = k_ - m + i;
                    const uint16_t bits = bits_[static_cast<size_t>(row * k_ + k)];
                    /* vdpbf16ps and tdpbf16ps take a denormal for 0. */
                    const bool lost = isa >= TACHO_ISA_AVX512_BF16 && (bits & 0x7f80) == 0;
                    ASSERT_EQ(lost ? 0 : bfloat_value(bits), static_cast<double>(y.at(i, row)))
                        << row << ", " << k << " of " << m << " rows";
                }
            }
        }
    }

    int64_t n_;
    int64_t k_;
    std::vector<uint16_t> bits_;
};

TEST_P(MatmulTest, BFloatsKeepAllTheirBits) {
    Numbers numbers(seed());
    const int64_t n = numbers.between(1, 40);
    const int64_t k = numbers.between(1, 300);
    BFloats weights(n, k);
    weights.fill(numbers);
    weights.expect_kept(isa());
    /* What a table of neighbouring sizes lacks, first and last and anywhere. */
    for (uint16_t odd : {0x0000, 0x8000, 0x0080, 0x8180, 0x0001, 0x7f00, 0xff7f}) {
        weights.at(numbers.between(0, n - 1), numbers.between(0, k - 1)) = odd;
    }
    weights.at(0, 0) = 0x0123;
    weights.at(n - 1, k - 1) = 0xfe01;
    weights.expect_kept(isa());
    for (uint16_t odd : {0x7f80, 0xff80, 0x7fc0, 0xff81}) {
        weights.at(numbers.between(0, n - 1), numbers.between(0, k - 1)) = odd;
    }
    weights.expect_kept(isa());
}

/* A panel has room for 47 exceptions at k = 512; one more makes it plain. */
/* Operands, products and sums that are denormals, or nearly: they are flushed in one way or in none, whatever the number of
 * rows. */
TEST_P(MatmulTest, TinyBFloatsAreSummedAlikeInBatchesOfEverySize) {
    Numbers numbers(seed());
    const int64_t n = 40;
    const int64_t k = 256 * numbers.between(0, 2) + numbers.between(1, 70);
    std::vector<uint16_t> bits(static_cast<size_t>(n * k));
    const auto tiny = [&] {
        const double sizes[] = {1, 0x1p-63, 0x1p-64, 0x1p-70, 0x1p-127, 0x1p-130};
        return numbers.normal() * sizes[numbers.between(0, 5)];
    };
    for (uint16_t& value : bits) {
        value = nearest_bfloat(tiny() * 0x1p-20);
    }
    const PackedWeight weight(isa(), TACHO_DTYPE_BF16, n, k, reinterpret_cast<const uint8_t*>(bits.data()));
    const int64_t most = 70;
    const Matrix x(most, k, k);
    for (int64_t i = 0; i < most; ++i) {
        for (int64_t j = 0; j < k; ++j) {
            x.at(i, j) = static_cast<float>(tiny() * 0x1p-43);
        }
    }
    const PackedRows packed(isa(), TACHO_DTYPE_BF16, x);
    auto p = make<tacho_matmul_params>(isa());
    p.dtype = TACHO_DTYPE_BF16;
    p.n = p.ldy = n;
    p.k = k;
    p.x_row_bytes = packed.row_bytes();
    p.w = weight.data();
    const Matrix alone(most, n, n);
    p.m = 1;
    for (int64_t i = 0; i < most; ++i) {
        p.x = packed.row(i);
        p.y = alone.row(i);
        run(tacho_matmul, p, 0, (n + 15) / 16);
    }
    for (int64_t m : {2, 3, 4, 5, 15, 16, 17, 31, 33, 70}) {
        const Matrix y(m, n, n);
        p.m = m;
        p.x = packed.row(0);
        p.y = y.data();
        run(tacho_matmul, p, 0, (n + 15) / 16);
        for (int64_t i = 0; i < m; ++i) {
            ASSERT_TRUE(y.same_row(i, alone, i)) << "row " << i << " of " << m << ", k " << k;
        }
    }
}

TEST_P(MatmulTest, BFloatsKeepTheirBitsWhereExceptionsAbound) {
    Numbers numbers(seed());
    for (int64_t exceptions : {46, 47, 48, 49, 3000}) {
        BFloats weights(17, 512);
        weights.fill(numbers);
        for (int64_t i = 0; i < 16 * 512; ++i) {
            uint16_t& bits = weights.at(i / 512, i % 512);
            bits = static_cast<uint16_t>(0x3f80 | (bits & 0x807f));
        }
        for (int64_t i = 0; i < exceptions; ++i) {
            weights.at(i % 16, 511 - i / 16) = static_cast<uint16_t>(numbers.between(1, 0x0fff));
        }
        weights.expect_kept(isa());
    }
}

/* FNV-1a of 20 rows that are packed, of a fixed content. */
uint64_t packed_hash(int32_t isa, int32_t dtype, int64_t k) {
    std::vector<uint8_t> rows(static_cast<size_t>(20 * row_bytes(dtype, k)));
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<uint8_t>(static_cast<uint32_t>(i * 2654435761u) >> 24);
    }
    const PackedWeight packed(isa, dtype, 20, k, rows.data());
    int64_t bytes = 0;
    EXPECT_EQ(TACHO_OK, tacho_weight_bytes(isa, dtype, 20, k, &bytes));
    uint64_t hash = 0xcbf29ce484222325;
    for (int64_t i = 0; i < bytes; ++i) {
        hash = (hash ^ static_cast<const uint8_t*>(packed.data())[i]) * 0x100000001b3;
    }
    return hash;
}

/* The values are those of packing element by element, as weights.h draws it. */
TEST_P(MatmulTest, PackedBytesAreThoseOfTheLayout) {
    const bool code_pairs = isa() == TACHO_ISA_AVX2 || isa() == TACHO_ISA_AVX512;
    EXPECT_EQ(0xf8b4d666622d27f3, packed_hash(isa(), TACHO_DTYPE_F32, 549));
    EXPECT_EQ(0x68c302c3d832ff54, packed_hash(isa(), TACHO_DTYPE_F16, 549));
    EXPECT_EQ(0xda82529e903c4c1a, packed_hash(isa(), TACHO_DTYPE_BF16, 549));
    EXPECT_EQ(code_pairs ? 0xedc04bbeacaaef8f : 0x262dcb11dfd28f1f, packed_hash(isa(), TACHO_DTYPE_Q8_0, 544));
    EXPECT_EQ(0xdcfd6c6ab0b2c2eb, packed_hash(isa(), TACHO_DTYPE_Q4_0, 544));
    EXPECT_EQ(0x3e93679af9e99029, packed_hash(isa(), TACHO_DTYPE_Q4_K, 768));
    EXPECT_EQ(0x3bf70dccbc8a859a, packed_hash(isa(), TACHO_DTYPE_Q6_K, 768));
}

TACHO_SEEDED_TESTS(MatmulTest, 12);

}  // namespace
}  // namespace tacho_test
