#include "api/isa.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "api/error.h"
#include "cpu/dispatch.h"

namespace tacho {

namespace {

/* Puts "avx512f, avx512bw" into text. */
void list_features(const char* const* features, char* text, size_t capacity) {
    size_t at = 0;
    text[0] = '\0';
    for (; *features != nullptr && at < capacity; ++features) {
        at += static_cast<size_t>(std::snprintf(text + at, capacity - at, "%s%s", at == 0 ? "" : ", ", *features));
    }
}

int32_t resolve(const char* origin, const char* word, const KernelTable** table) {
    int32_t limit = TACHO_ISA_AMX;
    if (word != nullptr && word[0] != '\0') {
        limit = isa_number(word);
        if (limit == 0) {
            return fail(TACHO_EINVAL, "%s is \"%.64s\", must be scalar, avx2, avx512, avx512_vnni, avx512_bf16 or amx",
                        origin, word);
        }
    }
    *table = best_kernels(limit);
    return TACHO_OK;
}

int32_t select_auto(const KernelTable** table) {
    static std::atomic<const KernelTable*> chosen{nullptr};
    *table = chosen.load(std::memory_order_acquire);
    if (*table != nullptr) {
        return TACHO_OK;
    }
    const int32_t status = resolve("TACHO_MAX_ISA", std::getenv("TACHO_MAX_ISA"), table);
    if (status == TACHO_OK) {
        chosen.store(*table, std::memory_order_release);
    }
    return status;
}

}  // namespace

int32_t select_kernels(int32_t isa, const KernelTable** table) {
    if (isa == TACHO_ISA_AUTO) {
        return select_auto(table);
    }
    const char* name = isa_name(isa);
    if (name == nullptr) {
        return fail(TACHO_EINVAL, "isa is %d, must be a TACHO_ISA_* number (0 to %d)", isa, TACHO_ISA_AMX);
    }
    *table = find_kernels(isa);
    if (*table == nullptr) {
        char features[128];
        list_features(missing_features(isa), features, sizeof features);
        return fail(TACHO_EUNSUPPORTED, "isa %s cannot run here, missing: %s", name, features);
    }
    return TACHO_OK;
}

}  // namespace tacho

extern "C" {

int32_t tacho_isa_resolve(const char* max_isa, int32_t* isa) {
    if (isa == nullptr) {
        return tacho::fail(TACHO_EINVAL, "isa_resolve: isa is NULL");
    }
    const tacho::KernelTable* table = nullptr;
    const int32_t status = tacho::resolve("isa_resolve: max_isa", max_isa, &table);
    if (status == TACHO_OK) {
        *isa = table->isa;
    }
    return status;
}

int32_t tacho_isa_check(int32_t isa) {
    const tacho::KernelTable* table = nullptr;
    return tacho::select_kernels(isa, &table);
}

}  // extern "C"
