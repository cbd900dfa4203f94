/*
 * How fast a matmul of one row reads its weights from memory, beside a loop that does nothing but read them; and how
 * fast one of many rows multiplies.
 *
 *   usage: tacho_weight_bandwidth [-t threads] [-m megabytes] [-r rounds] [-x rows] [-n n] [-k k] [-d dtype]...
 *                                 LIBRARY...
 *
 * dtype: the number of a TACHO_DTYPE_*, all of them if none is given. Each LIBRARY is a build of libtacho to be compared
 * with the others, in turns, so that a change of the machine meets all of them. They must pack weights alike: the first
 * packs for all. Prints the best and the median of the rounds in GB/s of weights, and the best in GFLOP/s.
 *
 * The weights are [n][k] matrices, [8192][2048] if nothing else is said, one behind the other, of which each thread
 * multiplies its part; the threads meet behind each matrix, as they do in a layer.
 */
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "reading.h"
#include "tacho/tacho.h"

namespace {

[[noreturn]] void die(const std::string& message) {
    std::fprintf(stderr, "weight_bandwidth: %s\n", message.c_str());
    std::exit(1);
}

struct Library {
    std::string path;
    decltype(&tacho_weight_bytes) weight_bytes;
    decltype(&tacho_weight_pack) weight_pack;
    decltype(&tacho_activation_format) activation_format;
    decltype(&tacho_activation_bytes) activation_bytes;
    decltype(&tacho_activation_pack) activation_pack;
    decltype(&tacho_matmul) matmul;
    decltype(&tacho_memory_map) memory_map;
    decltype(&tacho_memory_unmap) memory_unmap;
    decltype(&tacho_isa_resolve) isa_resolve;
};

template <class Function>
void find(void* handle, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    if (*function == nullptr) {
        die(dlerror());
    }
}

Library open(const char* path) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        die(dlerror());
    }
    Library library{};
    library.path = path;
    find(handle, "tacho_weight_bytes", &library.weight_bytes);
    find(handle, "tacho_weight_pack", &library.weight_pack);
    find(handle, "tacho_activation_format", &library.activation_format);
    find(handle, "tacho_activation_bytes", &library.activation_bytes);
    find(handle, "tacho_activation_pack", &library.activation_pack);
    find(handle, "tacho_matmul", &library.matmul);
    find(handle, "tacho_memory_map", &library.memory_map);
    find(handle, "tacho_memory_unmap", &library.memory_unmap);
    find(handle, "tacho_isa_resolve", &library.isa_resolve);
    return library;
}

void require(int32_t status, const char* what) {
    if (status != TACHO_OK) {
        die(std::string(what) + " failed with status " + std::to_string(status));
    }
}

struct Options {
    int threads = 2;
    int64_t megabytes = 1024;
    int rounds = 9;
    int64_t rows = 1;
    int64_t n = 8192;
    int64_t k = 2048;
    std::vector<int32_t> dtypes;
    std::vector<Library> libraries;
};

/* Memory as the engine takes it: in huge pages where there are some. */
class Memory {
public:
    Memory(const Library& library, int64_t bytes) : library_(library), bytes_(bytes) {
        require(library.memory_map(bytes, &data_), "memory_map");
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { library_.memory_unmap(data_, bytes_); }

    void* data() const { return data_; }

private:
    const Library& library_;
    const int64_t bytes_;
    void* data_ = nullptr;
};

/* The weights of one type and what is needed to multiply with them. */
class Weights {
public:
    Weights(const Library& library, int32_t dtype, const Options& options)
        : library_(library), rows_(options.rows), n_(options.n), k_(options.k), panels_((n_ + 15) / 16) {
        require(library.isa_resolve(std::getenv("TACHO_MAX_ISA"), &isa_), "isa_resolve");
        require(library.weight_bytes(isa_, dtype, n_, k_, &matrix_bytes_), "weight_bytes");
        matrices_ = std::max<int64_t>(1, (options.megabytes << 20) / matrix_bytes_);
        memory_.emplace(library, bytes());
        pack(dtype);
        for (int64_t i = 1; i < matrices_; ++i) {
            std::memcpy(matrix(i), matrix(0), static_cast<size_t>(matrix_bytes_));
        }
        make_activations(dtype);
        y_.emplace(library, rows_ * n_ * 4);
        params_ = {};
        params_.struct_size = sizeof params_;
        params_.isa = isa_;
        params_.dtype = dtype;
        params_.m = rows_;
        params_.n = n_;
        params_.k = k_;
        params_.x_row_bytes = row_bytes_;
        params_.ldy = n_;
        params_.x = x_->data();
        params_.y = static_cast<float*>(y_->data());
    }
    Weights(const Weights&) = delete;
    Weights& operator=(const Weights&) = delete;

    int64_t bytes() const { return matrices_ * matrix_bytes_; }

    /* Operations for each byte of weights. */
    double intensity() const {
        return 2 * static_cast<double>(rows_ * n_ * k_) / static_cast<double>(matrix_bytes_);
    }

    double multiply(const Library& library, int threads) const {
        const int64_t nanos = Team(threads).run([&](int thread, auto meet) {
            tacho_matmul_params params = params_;
            for (int64_t i = 0; i < matrices_; ++i) {
                params.w = matrix(i);
                require(library.matmul(&params, panels_ * thread / threads, panels_ * (thread + 1) / threads, nullptr),
                        "matmul");
                meet();
            }
        });
        return static_cast<double>(bytes()) / static_cast<double>(nanos);
    }

    double read(int threads) const {
        double best = 0;
        std::atomic<uint64_t> kept{0};
        for (int way = 0; way < kWays; ++way) {
            const int64_t nanos = Team(threads).run([&](int thread, auto) {
                const int64_t part = bytes() / threads / 64 * 64;
                kept ^= read_all(matrix(0) + part * thread, part, way);
            });
            best = std::max(best, static_cast<double>(bytes()) / static_cast<double>(nanos));
        }
        return best;
    }

private:
    uint8_t* matrix(int64_t i) const { return static_cast<uint8_t*>(memory_->data()) + i * matrix_bytes_; }

    /* Finite numbers. The time depends on them in BF16 alone, where they are Gaussian as those of models are. */
    std::vector<uint8_t> source(int32_t dtype) const {
        std::vector<uint8_t> bytes(static_cast<size_t>(n_ * k_ * 4), 0x21);
        if (dtype == TACHO_DTYPE_BF16) {
            std::mt19937 random(1);
            std::normal_distribution<float> weight(0, 0.02F);
            for (int64_t i = 0; i < n_ * k_; ++i) {
                const float value = weight(random);
                std::memcpy(&bytes[static_cast<size_t>(2 * i)], reinterpret_cast<const uint8_t*>(&value) + 2, 2);
            }
        }
        return bytes;
    }

    void pack(int32_t dtype) {
        const std::vector<uint8_t> source = this->source(dtype);
        tacho_weight_pack_params pack{};
        pack.struct_size = sizeof pack;
        pack.isa = isa_;
        pack.dtype = dtype;
        pack.n = n_;
        pack.k = k_;
        pack.source = source.data();
        pack.packed = matrix(0);
        require(library_.weight_pack(&pack, 0, panels_, nullptr), "weight_pack");
    }

    void make_activations(int32_t dtype) {
        const std::vector<float> x(static_cast<size_t>(rows_ * k_), 0.5F);
        tacho_activation_pack_params pack{};
        pack.struct_size = sizeof pack;
        pack.isa = isa_;
        require(library_.activation_format(isa_, dtype, &pack.format), "activation_format");
        require(library_.activation_bytes(isa_, pack.format, k_, &row_bytes_), "activation_bytes");
        row_bytes_ = ((row_bytes_ + 63) / 64 | 1) * 64; /* an odd number of lines, as in the engine */
        x_.emplace(library_, rows_ * row_bytes_);
        pack.m = rows_;
        pack.k = k_;
        pack.ldx = k_;
        pack.row_bytes = row_bytes_;
        pack.x = x.data();
        pack.packed = x_->data();
        require(library_.activation_pack(&pack, 0, (k_ + 31) / 32, nullptr), "activation_pack");
    }

    const Library& library_;
    const int64_t rows_;
    const int64_t n_;
    const int64_t k_;
    const int64_t panels_;
    int32_t isa_ = 0;
    int64_t matrix_bytes_ = 0;
    int64_t matrices_ = 0;
    int64_t row_bytes_ = 0;
    std::optional<Memory> memory_;
    std::optional<Memory> x_;
    std::optional<Memory> y_;
    tacho_matmul_params params_{};
};

void print(int32_t dtype, const std::string& what, double intensity, std::vector<double> rates) {
    std::sort(rates.begin(), rates.end());
    std::printf("dtype %2d  best %6.2f  median %6.2f GB/s  best %7.1f GFLOP/s  %s\n", dtype, rates.back(),
                rates[rates.size() / 2], rates.back() * intensity, what.c_str());
    std::fflush(stdout);
}

void compare(const Options& options, int32_t dtype) {
    const Weights weights(options.libraries.front(), dtype, options);
    std::vector<std::vector<double>> rates(options.libraries.size() + 1);
    for (int round = 0; round < options.rounds; ++round) {
        rates[0].push_back(weights.read(options.threads));
        for (size_t i = 0; i < options.libraries.size(); ++i) {
            rates[i + 1].push_back(weights.multiply(options.libraries[i], options.threads));
        }
    }
    print(dtype, "reading alone", 0, rates[0]);
    for (size_t i = 0; i < options.libraries.size(); ++i) {
        print(dtype, options.libraries[i].path, weights.intensity(), rates[i + 1]);
    }
}

Options parse(int argc, char** argv) {
    Options options;
    for (int option; (option = getopt(argc, argv, "t:m:r:x:n:k:d:")) != -1;) {
        switch (option) {
            case 't':
                options.threads = std::max(1, std::atoi(optarg));
                break;
            case 'm':
                options.megabytes = std::max(1, std::atoi(optarg));
                break;
            case 'r':
                options.rounds = std::max(1, std::atoi(optarg));
                break;
            case 'x':
                options.rows = std::max(1, std::atoi(optarg));
                break;
            case 'n':
                options.n = std::max(1, std::atoi(optarg));
                break;
            case 'k':
                options.k = std::max(1, std::atoi(optarg));
                break;
            case 'd':
                options.dtypes.push_back(std::atoi(optarg));
                break;
            default:
                std::exit(2);
        }
    }
    for (int i = optind; i < argc; ++i) {
        options.libraries.push_back(open(argv[i]));
    }
    if (options.libraries.empty()) {
        die("name at least one libtacho.so, with a / in its path");
    }
    if (options.dtypes.empty()) {
        options.dtypes = {TACHO_DTYPE_F32,  TACHO_DTYPE_F16,  TACHO_DTYPE_BF16, TACHO_DTYPE_Q8_0,
                          TACHO_DTYPE_Q4_0, TACHO_DTYPE_Q4_K, TACHO_DTYPE_Q6_K};
    }
    return options;
}

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    for (const int32_t dtype : options.dtypes) {
        compare(options, dtype);
    }
    return 0;
}
