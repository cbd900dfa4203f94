#include "reference.h"

#include <cmath>
#include <limits>

namespace tacho_test {

namespace {

/* The nearest number with `precision` significant bits and no exponent below `lowest`, ties to even. */
double rounded(double value, int precision, int lowest) {
    if (value == 0) {
        return value;
    }
    const int exponent = std::max(std::ilogb(value), lowest);
    return std::ldexp(std::nearbyint(std::ldexp(value, precision - 1 - exponent)), exponent - precision + 1);
}

int64_t packed_bytes(int32_t isa, int32_t dtype, int64_t n, int64_t k) {
    int64_t bytes = 0;
    EXPECT_EQ(TACHO_OK, tacho_weight_bytes(isa, dtype, n, k, &bytes)) << last_error();
    return bytes;
}

uint16_t read_u16(const uint8_t* from) {
    return static_cast<uint16_t>(from[0] | from[1] << 8);
}

}  // namespace

double half_value(uint16_t bits) {
    const double sign = bits & 0x8000 ? -1 : 1;
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    if (exponent == 31) {
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    }
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

double bfloat_value(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return static_cast<double>(value);
}

uint16_t nearest_half(double value) {
    const double magnitude = std::fabs(rounded(value, 11, -14));
    const int sign = std::signbit(value) ? 0x8000 : 0;
    if (magnitude >= 65536) {
        return static_cast<uint16_t>(sign | 0x7c00);
    }
    if (magnitude < std::ldexp(1, -14)) {
        return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(magnitude, 24)));
    }
    const int exponent = std::ilogb(magnitude);
    const int fraction = static_cast<int>(std::ldexp(magnitude, 10 - exponent)) - 1024;
    return static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction);
}

uint16_t nearest_bfloat(double value) {
    const auto narrow = static_cast<float>(rounded(value, 8, -126));
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    return static_cast<uint16_t>(bits >> 16);
}

double element_value(const void* data, int32_t dtype, int64_t i) {
    if (dtype == TACHO_DTYPE_F32) {
        return static_cast<double>(static_cast<const float*>(data)[i]);
    }
    const uint16_t bits = static_cast<const uint16_t*>(data)[i];
    return dtype == TACHO_DTYPE_F16 ? half_value(bits) : bfloat_value(bits);
}

void set_element(void* data, int32_t dtype, int64_t i, double value) {
    if (dtype == TACHO_DTYPE_F32) {
        static_cast<float*>(data)[i] = static_cast<float>(value);
    } else {
        static_cast<uint16_t*>(data)[i] = dtype == TACHO_DTYPE_F16 ? nearest_half(value) : nearest_bfloat(value);
    }
}

int64_t row_bytes(int32_t dtype, int64_t k) {
    switch (dtype) {
        case TACHO_DTYPE_F32:
            return 4 * k;
        case TACHO_DTYPE_Q8_0:
            return k / 32 * 34;
        case TACHO_DTYPE_Q4_0:
            return k / 32 * 18;
        default:
            return 2 * k;
    }
}

std::vector<double> row_values(const uint8_t* row, int32_t dtype, int64_t k) {
    std::vector<double> values(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i) {
        double& value = values[static_cast<size_t>(i)];
        if (dtype == TACHO_DTYPE_Q8_0) {
            const uint8_t* block = row + i / 32 * 34;
            value = half_value(read_u16(block)) * static_cast<int8_t>(block[2 + i % 32]);
        } else if (dtype == TACHO_DTYPE_Q4_0) {
            const uint8_t* block = row + i / 32 * 18;
            const int byte = block[2 + i % 16];
            value = half_value(read_u16(block)) * ((i % 32 < 16 ? byte & 15 : byte >> 4) - 8);
        } else {
            uint8_t element[4];
            const int64_t size = row_bytes(dtype, 1);
            std::memcpy(element, row + i * size, static_cast<size_t>(size));
            float narrow;
            std::memcpy(&narrow, element, sizeof narrow);
            value = dtype == TACHO_DTYPE_F32   ? static_cast<double>(narrow)
                    : dtype == TACHO_DTYPE_F16 ? half_value(read_u16(element))
                                               : bfloat_value(read_u16(element));
        }
    }
    return values;
}

std::vector<uint8_t> random_rows(Numbers& numbers, int32_t dtype, int64_t n, int64_t k) {
    std::vector<uint8_t> rows(static_cast<size_t>(n * row_bytes(dtype, k)));
    const int64_t block = dtype == TACHO_DTYPE_Q8_0 ? 34 : dtype == TACHO_DTYPE_Q4_0 ? 18 : 0;
    if (block == 0) {
        std::vector<float> aligned(rows.size() / 4 + 1);
        for (int64_t i = 0; i < n * k; ++i) {
            set_element(aligned.data(), dtype, i, numbers.normal());
        }
        std::memcpy(rows.data(), aligned.data(), rows.size());
        return rows;
    }
    for (size_t at = 0; at < rows.size(); at += static_cast<size_t>(block)) {
        const uint16_t scale = nearest_half(numbers.normal() * 0.02);
        rows[at] = static_cast<uint8_t>(scale);
        rows[at + 1] = static_cast<uint8_t>(scale >> 8);
        for (int64_t i = 2; i < block; ++i) {
            rows[at + static_cast<size_t>(i)] = static_cast<uint8_t>(numbers.between(0, 255));
        }
    }
    return rows;
}

PackedWeight::PackedWeight(int32_t isa, int32_t dtype, int64_t n, int64_t k, const uint8_t* rows)
    : packed_(packed_bytes(isa, dtype, n, k)) {
    auto p = make<tacho_weight_pack_params>(isa);
    p.dtype = dtype;
    p.n = n;
    p.k = k;
    p.source = rows;
    p.packed = packed_.data();
    const int64_t groups = (n + 15) / 16;
    run(tacho_weight_pack, p, groups / 2, groups);
    run(tacho_weight_pack, p, 0, groups / 2);
    EXPECT_TRUE(packed_.front_intact());
}

}  // namespace tacho_test
