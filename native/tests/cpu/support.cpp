#include "support.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace tacho_test {

std::string isa_name(int32_t isa) {
    switch (isa) {
        case TACHO_ISA_SCALAR:
            return "scalar";
        case TACHO_ISA_AVX2:
            return "avx2";
        case TACHO_ISA_AVX512:
            return "avx512";
        case TACHO_ISA_AVX512_VNNI:
            return "avx512_vnni";
        case TACHO_ISA_AVX512_BF16:
            return "avx512_bf16";
        case TACHO_ISA_AMX:
            return "amx";
        default:
            return "isa" + std::to_string(isa);
    }
}

std::vector<int32_t> runnable_isas() {
    std::vector<int32_t> isas;
    for (int32_t isa : {TACHO_ISA_SCALAR, TACHO_ISA_AVX2, TACHO_ISA_AVX512, TACHO_ISA_AVX512_VNNI,
                        TACHO_ISA_AVX512_BF16, TACHO_ISA_AMX}) {
        if (tacho_isa_check(isa) == TACHO_OK) {
            isas.push_back(isa);
        }
    }
    return isas;
}

std::string last_error() {
    char text[512];
    tacho_last_error(text, sizeof text);
    return text;
}

GuardedMemory::GuardedMemory(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t usable = (bytes + page - 1) / page * page + page;
    map_bytes_ = usable + page;
    void* map = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(static_cast<uint8_t*>(map) + usable, page, PROT_NONE) != 0) {
        ADD_FAILURE() << "no guarded memory of " << bytes << " bytes";
        std::abort();
    }
    map_ = static_cast<uint8_t*>(map);
    data_ = map_ + usable - bytes;
    std::memset(map_, 0xff, usable);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : map_(other.map_), map_bytes_(other.map_bytes_), data_(other.data_) {
    other.map_ = nullptr;
}

GuardedMemory::~GuardedMemory() {
    if (map_ != nullptr) {
        munmap(map_, map_bytes_);
    }
}

bool GuardedMemory::front_intact() const {
    return std::all_of(static_cast<const uint8_t*>(map_), static_cast<const uint8_t*>(data_),
                       [](uint8_t byte) { return byte == 0xff; });
}

Matrix::Matrix(int64_t rows, int64_t columns, int64_t ld)
    : rows_(rows), columns_(columns), ld_(ld), elements_(rows == 0 ? 0 : (rows - 1) * ld + columns) {}

bool Matrix::gaps_intact() const {
    for (int64_t i = 0; i + 1 < rows_; ++i) {
        const auto* gap = reinterpret_cast<const uint8_t*>(row(i) + columns_);
        const auto* next = reinterpret_cast<const uint8_t*>(row(i + 1));
        if (!std::all_of(gap, next, [](uint8_t byte) { return byte == 0xff; })) {
            return false;
        }
    }
    return elements_.front_intact();
}

bool Matrix::same(const Matrix& that) const {
    for (int64_t i = 0; i < rows_; ++i) {
        if (!same_row(i, that, i)) {
            return false;
        }
    }
    return rows_ == that.rows_;
}

Matrix Matrix::clone() const {
    Matrix copy(rows_, columns_, columns_);
    for (int64_t i = 0; i < rows_; ++i) {
        std::copy(row(i), row(i) + columns_, copy.row(i));
    }
    return copy;
}

void Numbers::fill(const Matrix& matrix, double scale) {
    for (int64_t i = 0; i < matrix.rows(); ++i) {
        for (int64_t j = 0; j < matrix.columns(); ++j) {
            matrix.at(i, j) = static_cast<float>(normal() * scale);
        }
    }
}

Matrix Numbers::matrix(int64_t rows, int64_t columns, int64_t max_gap) {
    Matrix result(rows, columns, columns + between(0, max_gap));
    fill(result);
    return result;
}

}  // namespace tacho_test
