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
        case TACHO_DTYPE_Q4_K:
            return k / 256 * 144;
        case TACHO_DTYPE_Q6_K:
            return k / 256 * 210;
        default:
            return 2 * k;
    }
}

int64_t block_elements(int32_t dtype) {
    switch (dtype) {
        case TACHO_DTYPE_Q8_0:
        case TACHO_DTYPE_Q4_0:
            return 32;
        case TACHO_DTYPE_Q4_K:
        case TACHO_DTYPE_Q6_K:
            return 256;
        default:
            return 1;
    }
}

namespace {

/* Element i of a Q4_K block: f16 scale, f16 min, 12 bytes of 6-bit numbers, 128 bytes of nibbles. */
double q4_k_value(const uint8_t* block, int64_t i) {
    const uint8_t* six = block + 4;
    const int64_t sub = i / 32;
    int scale = six[sub] & 63;
    int min = six[sub + 4] & 63;
    if (sub >= 4) {
        scale = (six[sub + 4] & 15) + 16 * (six[sub - 4] >> 6);
        min = (six[sub + 4] >> 4) + 16 * (six[sub] >> 6);
    }
    const int byte = block[16 + i / 64 * 32 + i % 32];
    const int code = sub % 2 == 0 ? byte % 16 : byte / 16;
    return half_value(read_u16(block)) * scale * code - half_value(read_u16(block + 2)) * min;
}

/* Element i of a Q6_K block: 128 bytes of low nibbles, 64 of high bits, 16 int8 scales, f16 scale. */
double q6_k_value(const uint8_t* block, int64_t i) {
    const int64_t half = i / 128;
    const int64_t group = i / 32 % 4;
    const int byte = block[half * 64 + group % 2 * 32 + i % 32];
    const int low = group < 2 ? byte % 16 : byte / 16;
    const int high = block[128 + half * 32 + i % 32] >> (2 * group) & 3;
    const int scale = static_cast<int8_t>(block[192 + i / 16]);
    return half_value(read_u16(block + 208)) * scale * (low + 16 * high - 32);
}

}  // namespace

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
        } else if (dtype == TACHO_DTYPE_Q4_K) {
            value = q4_k_value(row + i / 256 * 144, i % 256);
        } else if (dtype == TACHO_DTYPE_Q6_K) {
            value = q6_k_value(row + i / 256 * 210, i % 256);
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
    const int64_t block = row_bytes(dtype, block_elements(dtype));
    if (block_elements(dtype) == 1) {
        std::vector<float> aligned(rows.size() / 4 + 1);
        /* Bfloats so far apart that few of them share an upper byte, at times. */
        const bool spread = dtype == TACHO_DTYPE_BF16 && numbers.between(0, 2) == 0;
        for (int64_t i = 0; i < n * k; ++i) {
            const int exponent = spread ? static_cast<int>(numbers.between(-60, 0)) : 0;
            set_element(aligned.data(), dtype, i, std::ldexp(numbers.normal(), exponent));
        }
        std::memcpy(rows.data(), aligned.data(), rows.size());
        return rows;
    }
    for (size_t at = 0; at < rows.size(); at += static_cast<size_t>(block)) {
        for (int64_t i = 0; i < block; ++i) {
            rows[at + static_cast<size_t>(i)] = static_cast<uint8_t>(numbers.between(0, 255));
        }
        const auto put_half = [&](int64_t offset, double value) {
            const uint16_t bits = nearest_half(value);
            rows[at + static_cast<size_t>(offset)] = static_cast<uint8_t>(bits);
            rows[at + static_cast<size_t>(offset) + 1] = static_cast<uint8_t>(bits >> 8);
        };
        put_half(dtype == TACHO_DTYPE_Q6_K ? 208 : 0, numbers.normal() * 0.02);
        if (dtype == TACHO_DTYPE_Q4_K) {
            put_half(2, numbers.normal() * 0.02);
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

int32_t format_of(int32_t isa, int32_t dtype) {
    int32_t format = -1;
    EXPECT_EQ(TACHO_OK, tacho_activation_format(isa, dtype, &format)) << last_error();
    return format;
}

int64_t activation_bytes(int32_t isa, int32_t format, int64_t k) {
    int64_t bytes = 0;
    EXPECT_EQ(TACHO_OK, tacho_activation_bytes(isa, format, k, &bytes)) << last_error();
    return bytes;
}

PackedRows::PackedRows(int32_t isa, int32_t dtype, const Matrix& x)
    : k_(x.columns()),
      format_(format_of(isa, dtype)),
      row_bytes_(activation_bytes(isa, format_, k_)),
      packed_(x.rows() * row_bytes_) {
    auto p = make<tacho_activation_pack_params>(isa);
    p.format = format_;
    p.m = x.rows();
    p.k = k_;
    p.ldx = x.ld();
    p.row_bytes = row_bytes_;
    p.x = x.data();
    p.packed = packed_.data();
    const int64_t blocks = (k_ + 31) / 32;
    run(tacho_activation_pack, p, blocks / 2, blocks);
    run(tacho_activation_pack, p, 0, blocks / 2);
    EXPECT_TRUE(packed_.front_intact());
}

int PackedRows::code(int64_t i, int64_t j) const {
    return static_cast<int8_t>(block(i, j)[j % 32]);
}

float PackedRows::scale(int64_t i, int64_t j) const {
    float scale;
    std::memcpy(&scale, block(i, j) + 32, sizeof scale);
    return scale;
}

double PackedRows::value(int64_t i, int64_t j) const {
    switch (format_) {
        case TACHO_ACTIVATION_INT8:
            return static_cast<double>(scale(i, j)) * code(i, j);
        case TACHO_ACTIVATION_BF16:
            return element_value(row(i), TACHO_DTYPE_BF16, j);
        default:
            return element_value(row(i), TACHO_DTYPE_F32, j);
    }
}

}  // namespace tacho_test
