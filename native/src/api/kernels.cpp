/*
 * The kernels of the C ABI: check the arguments, pick the table, run, count. The library is built without exceptions
 * (nothing in it allocates or throws), so none can cross.
 */
#include "api/checks.h"
#include "api/error.h"
#include "api/isa.h"
#include "core/flop_counters.h"
#include "cpu/kernel_table.h"
#include "tacho/tacho.h"

namespace tacho {

namespace {

/* Where items are not rows, there can be items without work. */
bool without_rows(const tacho_matmul_params& p) {
    return p.m == 0;
}
bool without_rows(const tacho_activation_pack_params& p) {
    return p.m == 0;
}
bool without_rows(const tacho_silu_mul_params& p) {
    return p.m == 0;
}
bool without_rows(const tacho_kv_write_params& p) {
    return p.num_tokens == 0;
}
template <class Params>
bool without_rows(const Params&) {
    return false;
}

void add_work(const Work& work, tacho_counters* counters) {
    counters->calls += 1;
    counters->flops += work.flops;
    counters->read_bytes += work.read_bytes;
    counters->write_bytes += work.write_bytes;
}

template <class Params>
int32_t run(const char* operation, const Params* params, int64_t begin, int64_t end, tacho_counters* counters,
            void (*KernelTable::*kernel)(const Params&, int64_t, int64_t)) {
    if (params == nullptr) {
        return fail(TACHO_EINVAL, "%s: params is NULL", operation);
    }
    if (params->struct_size != sizeof(Params)) {
        return fail(TACHO_EINVAL, "%s: struct_size is %u, must be %u", operation, params->struct_size,
                    static_cast<uint32_t>(sizeof(Params)));
    }
    const KernelTable* kernels = nullptr;
    int32_t status = select_kernels(params->isa, &kernels);
    if (status != TACHO_OK) {
        return status;
    }
    status = check_shape(*params, *kernels);
    if (status != TACHO_OK) {
        return status;
    }
    const int64_t items = work_items(*params);
    if (begin < 0 || begin > end || end > items) {
        return fail(TACHO_EINVAL, "%s: range is [%lld, %lld), must lie within [0, %lld)", operation,
                    static_cast<long long>(begin), static_cast<long long>(end), static_cast<long long>(items));
    }
    status = check_contents(*params, begin, end);
    if (status != TACHO_OK || begin == end || without_rows(*params)) {
        return status;
    }
    (kernels->*kernel)(*params, begin, end);
    if (counters != nullptr) {
        add_work(work_of(*params, begin, end), counters);
    }
    return TACHO_OK;
}

}  // namespace

}  // namespace tacho

extern "C" {

#define KERNEL(operation)                                                                            \
    int32_t tacho_##operation(const tacho_##operation##_params* params, int64_t begin, int64_t end,  \
                              tacho_counters* counters) {                                            \
        return tacho::run(#operation, params, begin, end, counters, &tacho::KernelTable::operation); \
    }
#include "cpu/kernels.def"
#undef KERNEL

int32_t tacho_weight_bytes(int32_t isa, int32_t dtype, int64_t n, int64_t k, int64_t* bytes) {
    if (bytes == nullptr) {
        return tacho::fail(TACHO_EINVAL, "weight_bytes: bytes is NULL");
    }
    const tacho::KernelTable* kernels = nullptr;
    int32_t status = tacho::select_kernels(isa, &kernels);
    if (status == TACHO_OK) {
        status = tacho::check_weight_shape("weight_bytes", dtype, n, k);
    }
    if (status == TACHO_OK) {
        *bytes = kernels->weight_bytes(dtype, n, k);
    }
    return status;
}

int32_t tacho_activation_format(int32_t isa, int32_t dtype, int32_t* format) {
    if (format == nullptr) {
        return tacho::fail(TACHO_EINVAL, "activation_format: format is NULL");
    }
    const tacho::KernelTable* kernels = nullptr;
    int32_t status = tacho::select_kernels(isa, &kernels);
    if (status == TACHO_OK) {
        status = tacho::check_weight_shape("activation_format", dtype, 1, 256);
    }
    if (status == TACHO_OK) {
        *format = kernels->activation_format(dtype);
    }
    return status;
}

int32_t tacho_activation_bytes(int32_t isa, int32_t format, int64_t k, int64_t* bytes) {
    if (bytes == nullptr) {
        return tacho::fail(TACHO_EINVAL, "activation_bytes: bytes is NULL");
    }
    const tacho::KernelTable* kernels = nullptr;
    int32_t status = tacho::select_kernels(isa, &kernels);
    if (status == TACHO_OK) {
        status = tacho::check_activation_shape("activation_bytes", format, k);
    }
    if (status == TACHO_OK) {
        *bytes = kernels->activation_bytes(format, k);
    }
    return status;
}

int32_t tacho_attention_scratch(int32_t isa, int32_t num_heads, int32_t num_kv_heads, int32_t head_dim,
                                int64_t* floats) {
    if (floats == nullptr) {
        return tacho::fail(TACHO_EINVAL, "attention_scratch: floats is NULL");
    }
    const tacho::KernelTable* kernels = nullptr;
    int32_t status = tacho::select_kernels(isa, &kernels);
    if (status == TACHO_OK) {
        status = tacho::check_heads("attention_scratch", num_heads, num_kv_heads, head_dim);
    }
    if (status == TACHO_OK) {
        *floats = kernels->attention_scratch(head_dim);
    }
    return status;
}

}  // extern "C"
