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
                                     TACHO_DTYPE_Q4_0};
constexpr int32_t kKvDtypes[] = {TACHO_DTYPE_F32, TACHO_DTYPE_F16, TACHO_DTYPE_BF16};

/* A matrix packed by the library, in guarded memory. */
class PackedWeight {
  public:
    PackedWeight(int32_t isa, int32_t dtype, int64_t n, int64_t k, const uint8_t* rows);
    const uint8_t* data() const { return packed_.data(); }

  private:
    Guarded<uint8_t> packed_;
};

}  // namespace tacho_test

#endif
