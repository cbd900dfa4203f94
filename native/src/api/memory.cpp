/* Memory for weights, straight from the system. */
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "api/argument_check.h"
#include "api/error.h"
#include "tacho/tacho.h"

namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kMaxBytes = int64_t{1} << 46;

int64_t round_up(int64_t bytes) {
    return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

void* map(int64_t bytes) {
    void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void unmap(void* memory, int64_t bytes) {
    if (bytes > 0) {
        munmap(memory, static_cast<size_t>(bytes));
    }
}

/* Maps one huge page more than needed and gives back what lies before and behind the aligned part. */
void* map_huge(int64_t bytes) {
    auto* start = static_cast<uint8_t*>(map(bytes + kHugePage));
    if (start == nullptr) {
        return nullptr;
    }
    const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(start));
    const int64_t before = round_up(address) - address;
    unmap(start, before);
    unmap(start + before + bytes, kHugePage - before);
    madvise(start + before, static_cast<size_t>(bytes), MADV_HUGEPAGE); /* a wish */
    return start + before;
}

}  // namespace

extern "C" {

int32_t tacho_memory_map(int64_t bytes, void** memory) {
    tacho::ArgumentCheck check("memory_map");
    check.range("bytes", bytes, 1, kMaxBytes).pointer("memory", memory);
    if (!check.ok()) {
        return check.status();
    }
    void* mapped = bytes < kHugePage ? map(bytes) : map_huge(round_up(bytes));
    if (mapped == nullptr) {
        return tacho::fail(TACHO_EINTERNAL, "memory_map: no %lld bytes: %s", static_cast<long long>(bytes),
                           std::strerror(errno));
    }
    *memory = mapped;
    return TACHO_OK;
}

int32_t tacho_memory_unmap(void* memory, int64_t bytes) {
    tacho::ArgumentCheck check("memory_unmap");
    check.range("bytes", bytes, 1, kMaxBytes).pointer("memory", static_cast<uint8_t*>(memory));
    if (check.ok()) {
        unmap(memory, bytes < kHugePage ? bytes : round_up(bytes));
    }
    return check.status();
}

}  // extern "C"
