#include "cpu/dispatch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace tacho {

namespace {

const KernelTable* const kTables[] = {
#define INSTRUCTION_SET(name, number) &name::kernel_table,
#include "cpu/instruction_sets.def"
#undef INSTRUCTION_SET
};

/* Every instruction set that has a name, whether this build has its kernels or not. */
struct Name {
    const char* name;
    int32_t isa;
};
constexpr Name kNames[] = {
    {"scalar", TACHO_ISA_SCALAR},
    {"avx2", TACHO_ISA_AVX2},
    {"avx512", TACHO_ISA_AVX512},
    {"avx512_vnni", TACHO_ISA_AVX512_VNNI},
    {"avx512_bf16", TACHO_ISA_AVX512_BF16},
    {"amx", TACHO_ISA_AMX},
};

constexpr int kMaxFeatures = 14;

/* The features that one instruction set lacks here. */
struct Features {
    const char* missing[kMaxFeatures];
    int count;

    void need(bool present, const char* name) {
        if (!present) {
            missing[count++] = name;
        }
    }
};

#if TACHO_X86_64
/* Linux gives a process the state of tiles, 8 KiB a thread that uses them, when it asks for it. */
bool may_use_tiles() {
    constexpr long kRequestPermission = 0x1023; /* ARCH_REQ_XCOMP_PERM of <asm/prctl.h>, which older headers lack */
    constexpr long kTileData = 18;              /* the XSAVE component of the tiles' data */
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

/* What this CPU and its operating system offer, asked once. */
struct Cpu {
    Features scalar = {};
    Features avx2 = {};
    Features avx512 = {};
    Features avx512_vnni = {};
    Features avx512_bf16 = {};
    Features amx = {};

    Cpu() {
#if TACHO_X86_64
        __builtin_cpu_init();
        avx2.need(__builtin_cpu_supports("avx2"), "avx2");
        avx2.need(__builtin_cpu_supports("fma"), "fma");
        avx2.need(__builtin_cpu_supports("f16c"), "f16c");
        avx512 = avx2;
        avx512.need(__builtin_cpu_supports("avx512f"), "avx512f");
        avx512.need(__builtin_cpu_supports("avx512bw"), "avx512bw");
        avx512.need(__builtin_cpu_supports("avx512vl"), "avx512vl");
        avx512.need(__builtin_cpu_supports("avx512dq"), "avx512dq");
        avx512_vnni = avx512;
        avx512_vnni.need(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
        avx512_bf16 = avx512_vnni;
        avx512_bf16.need(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
        amx = avx512_bf16;
        amx.need(__builtin_cpu_supports("amx-tile"), "amx_tile");
        amx.need(__builtin_cpu_supports("amx-int8"), "amx_int8");
        amx.need(__builtin_cpu_supports("amx-bf16"), "amx_bf16");
        if (__builtin_cpu_supports("amx-tile")) {
            amx.need(may_use_tiles(), "the system's permission for AMX tiles");
        }
#else
        avx2.need(false, "an x86-64 CPU");
        avx512 = avx2;
        avx512_vnni = avx2;
        avx512_bf16 = avx2;
        amx = avx2;
#endif
    }
};

const Cpu kCpu;

}  // namespace

int32_t isa_number(const char* name) {
    for (const Name& n : kNames) {
        if (std::strcmp(n.name, name) == 0) {
            return n.isa;
        }
    }
    return 0;
}

const char* isa_name(int32_t isa) {
    for (const Name& n : kNames) {
        if (n.isa == isa) {
            return n.name;
        }
    }
    return nullptr;
}

const char* const* missing_features(int32_t isa) {
    switch (isa) {
        case TACHO_ISA_AVX2:
            return kCpu.avx2.missing;
        case TACHO_ISA_AVX512:
            return kCpu.avx512.missing;
        case TACHO_ISA_AVX512_VNNI:
            return kCpu.avx512_vnni.missing;
        case TACHO_ISA_AVX512_BF16:
            return kCpu.avx512_bf16.missing;
        case TACHO_ISA_AMX:
            return kCpu.amx.missing;
        default:
            return kCpu.scalar.missing;
    }
}

const KernelTable* find_kernels(int32_t isa) {
    for (const KernelTable* table : kTables) {
        if (table->isa == isa && missing_features(isa)[0] == nullptr) {
            return table;
        }
    }
    return nullptr;
}

const KernelTable* best_kernels(int32_t limit) {
    const KernelTable* best = &scalar::kernel_table;
    for (const KernelTable* table : kTables) {
        if (table->isa <= limit && table->isa > best->isa && find_kernels(table->isa) == table) {
            best = table;
        }
    }
    return best;
}

}  // namespace tacho
