/* The part of the C ABI that is about the library itself. */
#include <cstdio>

#include "api/error.h"
#include "tacho/tacho.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

namespace {

const char kBuildInfo[] = "tacho " TACHO_VERSION
#if defined(__clang__)
                          ", clang " __clang_version__
#elif defined(__GNUC__)
                          ", gcc " __VERSION__
#endif
                          ", isa:"
#define INSTRUCTION_SET(name, number) " " TEXT(name)
#include "cpu/instruction_sets.def"
#undef INSTRUCTION_SET
                          ", glibc " TACHO_GLIBC_CEILING;

}  // namespace

extern "C" {

int32_t tacho_abi_version(void) {
    return TACHO_ABI_VERSION;
}

int32_t tacho_build_info(char* buffer, int64_t capacity_bytes) {
    return tacho::copy_text(kBuildInfo, buffer, capacity_bytes);
}

const char* tacho_status_string(int32_t status) {
    switch (status) {
        case TACHO_OK:
            return "ok";
        case TACHO_EINVAL:
            return "invalid argument";
        case TACHO_EUNSUPPORTED:
            return "not supported by this build or CPU";
        case TACHO_EINTERNAL:
            return "internal error";
        default:
            return "unknown status";
    }
}

int32_t tacho_last_error(char* buffer, int64_t capacity_bytes) {
    return tacho::copy_text(tacho::last_error(), buffer, capacity_bytes);
}

}  // extern "C"
