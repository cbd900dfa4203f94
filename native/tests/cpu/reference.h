/* The kernels' formulas in double precision, written plainly and apart from the kernels. */
#ifndef TACHO_TESTS_CPU_REFERENCE_H
#define TACHO_TESTS_CPU_REFERENCE_H

#include <cstdint>
#include <vector>

#include "support.h"

namespace tacho_test {

/* Value of a half, a bfloat. */
double half_value(uint16_t bits);
double bfloat_value(uint16_t bits);

/* The nearest half or bfloat to a finite number, ties to even. */
uint16_t nearest_half(double value);
uint16_t nearest_bfloat(double value);

/* Value of element i of a float, half or bfloat array. */
double element_value(const void* data, int32_t dtype, int64_t i);

/* Sets element i of a float, half or bfloat array to the nearest value. */
void set_element(void* data, int32_t dtype, int64_t i, double value);

/* Bytes of k elements in file layout. */
int64_t row_bytes(int32_t dtype, int64_t k);

/* The k values of a row in file layout. */
std::vector<double> row_values(const uint8_t* row, int32_t dtype, int64_t k);

/* Random rows [n][k] in file layout. */
std::vector<uint8_t> random_rows(Numbers& numbers, int32_t dtype, int64_t n, int64_t k);

constexpr int32_t kWeightDtypes[] = {TACHO_DTYPE_F32, TACHO_DTYPE_F16, TACHO_DTYPE_BF16, TACHO_DTYPE_Q8_0,
                                     TACHO_DTYPE_Q4_0, TACHO_DTYPE_Q4_K, TACHO_DTYPE_Q6_K};

/* Elements of a block of a dtype. */
int64_t block_elements(int32_t dtype);
constexpr int32_t kKvDtypes[] = {TACHO_DTYPE_F32, TACHO_DTYPE_F16, TACHO_DTYPE_BF16};

/* A matrix packed by the library, in guarded memory. */
class PackedWeight {
  public:
    PackedWeight(int32_t isa, int32_t dtype, int64_t n, int64_t k, const uint8_t* rows);
    const uint8_t* data() const { return packed_.data(); }

  private:
    Guarded<uint8_t> packed_;
};

/* Rows packed by the library for weights of a dtype, in guarded memory. */
class PackedRows {
  public:
    PackedRows(int32_t isa, int32_t dtype, const Matrix& x);

    int32_t format() const { return format_; }
    int64_t row_bytes() const { return row_bytes_; }
    const uint8_t* row(int64_t i) const { return packed_.data() + i * row_bytes_; }

    /* Element j of row i as the matmul understands it. */
    double value(int64_t i, int64_t j) const;
    /* Of INT8 rows. */
    int code(int64_t i, int64_t j) const;
    float scale(int64_t i, int64_t j) const;

  private:
    const uint8_t* block(int64_t i, int64_t j) const { return row(i) + j / 32 * 56; }

    int64_t k_;
    int32_t format_;
    int64_t row_bytes_;
    Guarded<uint8_t> packed_;
};

/* The form of activations for weights of a dtype, and the bytes of a row of k. */
int32_t format_of(int32_t isa, int32_t dtype);
int64_t activation_bytes(int32_t isa, int32_t format, int64_t k);

}  // namespace tacho_test

#endif
