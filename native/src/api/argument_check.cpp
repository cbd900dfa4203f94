#include "api/argument_check.h"

#include <cstdarg>
#include <cstdio>

#include "api/error.h"

namespace tacho {

namespace {

constexpr int64_t kMaxSize = INT32_MAX;
constexpr int64_t kMaxElements = int64_t{1} << 46;

/* Alignment of the elements of a packed matrix or a cache. */
uintptr_t element_alignment(int32_t dtype) {
    return dtype == TACHO_DTYPE_F32 ? alignof(float) : alignof(uint16_t);
}

}  // namespace

ArgumentCheck& ArgumentCheck::rule(bool held, const char* format, ...) {
    if (ok() && !held) {
        char words[384];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(words, sizeof words, format, arguments);
        va_end(arguments);
        status_ = fail(TACHO_EINVAL, "%s: %s", operation_, words);
    }
    return *this;
}

ArgumentCheck& ArgumentCheck::range(const char* field, int64_t value, int64_t min, int64_t max) {
    return rule(value >= min && value <= max, "%s is %lld, must be in [%lld, %lld]", field,
                static_cast<long long>(value), static_cast<long long>(min), static_cast<long long>(max));
}

ArgumentCheck& ArgumentCheck::size(const char* field, int64_t value, int64_t min) {
    return range(field, value, min, kMaxSize);
}

ArgumentCheck& ArgumentCheck::row_distance(const char* field, int64_t value, const char* columns_name,
                                           int64_t columns) {
    return rule(value >= columns, "%s is %lld, must be at least %s = %lld", field, static_cast<long long>(value),
                columns_name, static_cast<long long>(columns))
        .size(field, value, 0);
}

ArgumentCheck& ArgumentCheck::multiple(const char* field, int64_t value, const char* factor_name, int64_t factor) {
    return rule(factor > 0 && value % factor == 0, "%s is %lld, must be a multiple of %s = %lld", field,
                static_cast<long long>(value), factor_name, static_cast<long long>(factor));
}

ArgumentCheck& ArgumentCheck::extent(const char* what, int64_t a, int64_t b) {
    int64_t product = 0;
    const bool fits = !__builtin_mul_overflow(a, b, &product) && product <= kMaxElements;
    return rule(fits, "%s is %lld * %lld, must be at most 2^46 elements", what, static_cast<long long>(a),
                static_cast<long long>(b));
}

ArgumentCheck& ArgumentCheck::address(const char* field, uintptr_t address, uintptr_t alignment, bool needed) {
    rule(!needed || address != 0, "%s is NULL", field);
    return rule(address % alignment == 0, "%s is at %#llx, must be aligned to %d bytes", field,
                static_cast<unsigned long long>(address), static_cast<int>(alignment));
}

ArgumentCheck& ArgumentCheck::elements(const char* field, const void* pointer, int32_t dtype, bool needed) {
    return address(field, reinterpret_cast<uintptr_t>(pointer), element_alignment(dtype), needed);
}

ArgumentCheck& ArgumentCheck::weight_dtype(int32_t dtype, int64_t k) {
    switch (dtype) {
        case TACHO_DTYPE_F32:
        case TACHO_DTYPE_F16:
        case TACHO_DTYPE_BF16:
            return *this;
        case TACHO_DTYPE_Q8_0:
        case TACHO_DTYPE_Q4_0:
            return multiple("k", k, "the dtype's block", 32);
        case TACHO_DTYPE_Q4_K:
        case TACHO_DTYPE_Q6_K:
            return multiple("k", k, "the dtype's block", 256);
        default:
            if (ok()) {
                status_ = fail(TACHO_EUNSUPPORTED,
                               "%s: dtype is %d, must be F32 (0), F16 (1), Q4_0 (2), Q8_0 (8), Q4_K (12), Q6_K (14) or "
                               "BF16 (30)",
                               operation_, dtype);
            }
            return *this;
    }
}

ArgumentCheck& ArgumentCheck::activation_format(int32_t format, const char* k_name, int64_t k) {
    range("format", format, TACHO_ACTIVATION_F32, TACHO_ACTIVATION_BF16);
    return format == TACHO_ACTIVATION_INT8 ? multiple(k_name, k, "the format's block", 32) : *this;
}

ArgumentCheck& ArgumentCheck::activation_rows(const char* distance_name, int64_t row_bytes, int64_t least,
                                              int32_t format, const char* field, const void* data, int64_t rows) {
    const int64_t element = format == TACHO_ACTIVATION_BF16 ? 2 : 4;
    return row_distance(distance_name, row_bytes, "the bytes of a row", least)
        .multiple(distance_name, row_bytes, "bytes of an element", element)
        .extent(field, rows, row_bytes)
        .address(field, reinterpret_cast<uintptr_t>(data), static_cast<uintptr_t>(element), rows > 0);
}

ArgumentCheck& ArgumentCheck::kv_dtype(int32_t dtype) {
    if (ok() && dtype != TACHO_DTYPE_F32 && dtype != TACHO_DTYPE_F16 && dtype != TACHO_DTYPE_BF16 &&
        dtype != TACHO_DTYPE_Q8_0) {
        status_ = fail(TACHO_EUNSUPPORTED, "%s: kv_dtype is %d, must be F32 (0), F16 (1), Q8_0 (8) or BF16 (30)",
                       operation_, dtype);
    }
    return *this;
}

ArgumentCheck& ArgumentCheck::number(const char* field, float value, float min) {
    return rule(value >= min && value <= __FLT_MAX__, "%s is %g, must be finite and at least %g", field,
                static_cast<double>(value), static_cast<double>(min));
}

}  // namespace tacho
