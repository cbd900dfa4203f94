/*
 * How fast a loop that does nothing but read gets bytes from memory, in a time short enough to stand beside each run of
 * something else.
 *
 *   usage: tacho_memory_bandwidth THREADS
 *
 * Each thread, on a processor of its own, reads its part of a buffer beyond the caches, again and again for 0.2 s.
 * Prints the median of the passes in GB/s, of the faster way to read.
 */
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "reading.h"

namespace {

constexpr int64_t kLeastBytes = 256LL << 20;
constexpr int64_t kBytesOfThread = 64LL << 20;
constexpr int64_t kNanos = 200'000'000;

int measure(int threads) {
    const int64_t part = std::max(kBytesOfThread, kLeastBytes / threads / 64 * 64);
    const auto bytes = static_cast<size_t>(part * threads);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        std::perror("memory_bandwidth: mmap");
        return 1;
    }
    madvise(memory, bytes, MADV_HUGEPAGE); /* a wish */
    auto* parts = static_cast<uint8_t*>(memory);
    Team team(threads);
    /* Written, as pages that never were share one page of zeros. */
    team.run([&](int thread, auto) { std::memset(parts + part * thread, 1, static_cast<size_t>(part)); });
    double best = 0;
    std::atomic<uint64_t> kept{0};
    for (int way = 0; way < kWays; ++way) {
        std::vector<double> rates;
        for (int64_t left = kNanos / kWays; left > 0;) {
            const int64_t nanos = team.run([&](int thread, auto) { kept ^= read_all(parts + part * thread, part, way); });
            rates.push_back(static_cast<double>(bytes) / static_cast<double>(nanos));
            left -= nanos;
        }
        std::sort(rates.begin(), rates.end());
        best = std::max(best, rates[rates.size() / 2]);
    }
    std::printf("%.2f\n", best);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const int threads = argc == 2 ? std::atoi(argv[1]) : 0;
    if (threads < 1) {
        std::fprintf(stderr, "usage: tacho_memory_bandwidth THREADS, at least 1\n");
        return 2;
    }
    return measure(threads);
}
