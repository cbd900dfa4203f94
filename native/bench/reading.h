/* What the programs of this folder share: threads that are timed together, and a loop that only reads. */
#ifndef TACHO_BENCH_READING_H
#define TACHO_BENCH_READING_H

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

/* Threads that run one task after the other, each on a processor of its own. */
class Team {
public:
    explicit Team(int size) : size_(size) {}

    /* Nanoseconds from the first thread's start to the last one's end of body(thread, barrier). */
    template <class Body>
    int64_t run(Body body) {
        std::vector<int64_t> begins(static_cast<size_t>(size_));
        std::vector<int64_t> ends(static_cast<size_t>(size_));
        std::vector<std::thread> threads;
        for (int t = 0; t < size_; ++t) {
            threads.emplace_back([&, t] {
                pin(t);
                meet();
                begins[static_cast<size_t>(t)] = now();
                body(t, [this] { meet(); });
                ends[static_cast<size_t>(t)] = now();
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        return *std::max_element(ends.begin(), ends.end()) - *std::min_element(begins.begin(), begins.end());
    }

private:
    static int64_t now() {
        return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    }

    static void pin(int thread) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<unsigned>(thread), &set);
        sched_setaffinity(0, sizeof set, &set);
    }

    void meet() {
        const int64_t arrival = arrived_.fetch_add(1) + 1;
        const int64_t all = (arrival + size_ - 1) / size_ * size_;
        while (arrived_.load() < all) {
        }
    }

    const int size_;
    std::atomic<int64_t> arrived_{0};
};

/* Ways to read: as the processor fetches by itself, or with requests so many bytes ahead. Which is faster depends on it:
 * Zen 4 needs none, Sapphire Rapids gives a third more with them. */
constexpr int kWays = 2;
constexpr int64_t kBytesAhead = 4096;

/* Reads a range; the result only keeps the loop. */
inline uint64_t read_all(const uint8_t* from, int64_t bytes, int way) {
    uint64_t sums[16] = {};
    const auto* words = reinterpret_cast<const uint64_t*>(from);
    for (int64_t i = 0; i + 16 <= bytes / 8; i += 16) {
        if (way == 1) {
            __builtin_prefetch(words + i + kBytesAhead / 8);
            __builtin_prefetch(words + i + kBytesAhead / 8 + 8);
        }
        for (int j = 0; j < 16; ++j) {
            sums[j] ^= words[i + j];
        }
    }
    uint64_t all = 0;
    for (const uint64_t sum : sums) {
        all ^= sum;
    }
    return all;
}

#endif
