/* What the kernel tests share: instruction sets, guarded memory, seeded numbers, calls that must succeed. */
#ifndef TACHO_TESTS_CPU_SUPPORT_H
#define TACHO_TESTS_CPU_SUPPORT_H

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tacho/tacho.h"

namespace tacho_test {

/* Name of an instruction set. */
std::string isa_name(int32_t isa);

/* Instruction sets that are built and run on this CPU. */
std::vector<int32_t> runnable_isas();

/* The words of this thread's last failed call. */
std::string last_error();

/* Memory of `bytes` bytes that ends where the process may not read or write; what lies before it is all ones. */
class GuardedMemory {
  public:
    explicit GuardedMemory(size_t bytes);
    ~GuardedMemory();
    GuardedMemory(GuardedMemory&& other) noexcept;
    GuardedMemory(const GuardedMemory&) = delete;
    GuardedMemory& operator=(const GuardedMemory&) = delete;

    uint8_t* data() const { return data_; }
    /* Nobody wrote before the memory. */
    bool front_intact() const;

  private:
    uint8_t* map_;
    size_t map_bytes_;
    uint8_t* data_;
};

/* `count` elements in guarded memory, all ones at first: NaN as floats of every width, -1 as integers. */
template <class T>
class Guarded {
  public:
    explicit Guarded(int64_t count) : count_(count), memory_(static_cast<size_t>(count) * sizeof(T)) {}

    T* data() const { return reinterpret_cast<T*>(memory_.data()); }
    T& operator[](int64_t i) const { return data()[i]; }
    int64_t count() const { return count_; }
    int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }
    bool front_intact() const { return memory_.front_intact(); }
    std::vector<uint8_t> copy() const { return {memory_.data(), memory_.data() + bytes()}; }

  private:
    int64_t count_;
    GuardedMemory memory_;
};

/* A float matrix [rows][ld] whose rows have `columns` elements; the rest is NaN and must stay so. The last row ends
 * with its columns. */
class Matrix {
  public:
    Matrix(int64_t rows, int64_t columns, int64_t ld);

    float* data() const { return elements_.data(); }
    float* row(int64_t i) const { return data() + i * ld_; }
    float& at(int64_t i, int64_t j) const { return row(i)[j]; }
    int64_t rows() const { return rows_; }
    int64_t columns() const { return columns_; }
    int64_t ld() const { return ld_; }

    /* Nothing outside the rows' columns was written. */
    bool gaps_intact() const;
    /* Row i of this and row j of that have the same bits. */
    bool same_row(int64_t i, const Matrix& that, int64_t j) const {
        return std::memcmp(row(i), that.row(j), sizeof(float) * static_cast<size_t>(columns_)) == 0;
    }
    bool same(const Matrix& that) const;
    /* A copy without gaps. */
    Matrix clone() const;

  private:
    int64_t rows_;
    int64_t columns_;
    int64_t ld_;
    Guarded<float> elements_;
};

/* A seeded source of numbers. */
class Numbers {
  public:
    explicit Numbers(uint64_t seed) : engine_(seed) {}

    int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
    double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
    double normal() { return std::normal_distribution<double>()(engine_); }
    template <class T>
    T one_of(std::initializer_list<T> values) {
        return values.begin()[between(0, static_cast<int64_t>(values.size()) - 1)];
    }
    /* A matrix of normal numbers with up to `max_gap` unused elements a row. */
    Matrix matrix(int64_t rows, int64_t columns, int64_t max_gap = 5);
    void fill(const Matrix& matrix, double scale = 1);

  private:
    std::mt19937_64 engine_;
};

/* A params struct with its size and instruction set, the rest 0. */
template <class Params>
Params make(int32_t isa) {
    Params params;
    std::memset(&params, 0, sizeof params);
    params.struct_size = sizeof params;
    params.isa = isa;
    return params;
}

/* Runs a kernel over [begin, end) and expects success. */
template <class Params>
void run(int32_t (*kernel)(const Params*, int64_t, int64_t, tacho_counters*), const Params& params, int64_t begin,
         int64_t end) {
    ASSERT_EQ(TACHO_OK, kernel(&params, begin, end, nullptr)) << last_error();
}

/* Tests that run for each instruction set. */
class IsaTest : public testing::TestWithParam<int32_t> {
  public:
    int32_t isa() const { return GetParam(); }
};

/* Tests that run for each instruction set and seed. */
class SeededTest : public testing::TestWithParam<std::tuple<int32_t, int>> {
  public:
    int32_t isa() const { return std::get<0>(GetParam()); }
    uint64_t seed() const { return static_cast<uint64_t>(std::get<1>(GetParam())); }
};

}  // namespace tacho_test

#define TACHO_ISA_TESTS(suite)                                                           \
    INSTANTIATE_TEST_SUITE_P(Cpu, suite, testing::ValuesIn(tacho_test::runnable_isas()), \
                             [](const auto& info) { return tacho_test::isa_name(info.param); })

#define TACHO_SEEDED_TESTS(suite, seeds)                                                                               \
    INSTANTIATE_TEST_SUITE_P(                                                                                          \
        Cpu, suite, testing::Combine(testing::ValuesIn(tacho_test::runnable_isas()), testing::Range(1, (seeds) + 1)),  \
        [](const auto& info) {                                                                                         \
            return tacho_test::isa_name(std::get<0>(info.param)) + "_seed_" + std::to_string(std::get<1>(info.param)); \
        })

#endif
