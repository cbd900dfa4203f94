/* Checks of arguments that name the operation, the field, its value and the limit. */
#ifndef TACHO_API_ARGUMENT_CHECK_H
#define TACHO_API_ARGUMENT_CHECK_H

#include <cstdint>

#include "tacho/tacho.h"

namespace tacho {

/* Collects checks of one call; the first that fails decides the status and the words, later ones are skipped. */
class ArgumentCheck {
  public:
    explicit ArgumentCheck(const char* operation) : operation_(operation) {}

    /* min <= value <= max. */
    ArgumentCheck& range(const char* field, int64_t value, int64_t min, int64_t max);

    /* min <= value < 2^31: sizes are those of Java arrays. */
    ArgumentCheck& size(const char* field, int64_t value, int64_t min);

    /* The distance of rows: at least `columns`. */
    ArgumentCheck& row_distance(const char* field, int64_t value, const char* columns_name, int64_t columns);

    /* factor | value. */
    ArgumentCheck& multiple(const char* field, int64_t value, const char* factor_name, int64_t factor);

    /* a * b stays below 2^46, so that no size in bytes overflows. */
    ArgumentCheck& extent(const char* what, int64_t a, int64_t b);

    /* A pointer to elements that are read or written, if `needed`. */
    template <class T>
    ArgumentCheck& pointer(const char* field, const T* pointer, bool needed = true) {
        return address(field, reinterpret_cast<uintptr_t>(pointer), alignof(T), needed);
    }

    /* A pointer to elements of a dtype that only the caller knows. */
    ArgumentCheck& elements(const char* field, const void* pointer, int32_t dtype, bool needed = true);

    /* A type that weights can have, and k whole blocks of it. */
    ArgumentCheck& weight_dtype(int32_t dtype, int64_t k);

    /* A form of activations, and k whole blocks of it. */
    ArgumentCheck& activation_format(int32_t format, const char* k_name, int64_t k);

    /* Rows of activations in a form: row_bytes apart, at least `least`, whole elements of the form. */
    ArgumentCheck& activation_rows(const char* distance_name, int64_t row_bytes, int64_t least, int32_t format,
                                   const char* field, const void* data, int64_t rows);

    /* F32, F16, BF16 or Q8_0. */
    ArgumentCheck& kv_dtype(int32_t dtype);

    /* A finite float, at least min. */
    ArgumentCheck& number(const char* field, float value, float min);

    /* Any other rule. */
    __attribute__((format(printf, 3, 4))) ArgumentCheck& rule(bool held, const char* format, ...);

    bool ok() const { return status_ == TACHO_OK; }
    int32_t status() const { return status_; }

  private:
    ArgumentCheck& address(const char* field, uintptr_t address, uintptr_t alignment, bool needed);

    const char* operation_;
    int32_t status_ = TACHO_OK;
};

}  // namespace tacho

#endif
