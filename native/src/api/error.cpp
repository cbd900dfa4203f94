#include "api/error.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "tacho/tacho.h"

namespace tacho {

namespace {

thread_local char detail[512] = "";

}  // namespace

int32_t fail(int32_t status, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return status;
}

const char* last_error() {
    return detail;
}

int32_t copy_text(const char* text, char* buffer, int64_t capacity_bytes) {
    if (buffer == nullptr || capacity_bytes < 1) {
        return fail(TACHO_EINVAL, "buffer of %lld bytes at %p, must hold at least 1 byte",
                    static_cast<long long>(capacity_bytes), static_cast<void*>(buffer));
    }
    const int64_t length = std::min<int64_t>(static_cast<int64_t>(std::strlen(text)), capacity_bytes - 1);
    std::memcpy(buffer, text, static_cast<size_t>(length));
    buffer[length] = '\0';
    return TACHO_OK;
}

}  // namespace tacho
