/* The part of the C ABI that is about the library itself. */
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support.h"

namespace tacho_test {
namespace {

TEST(LibraryTest, InstructionSetsOfThisCpu) {
    std::string ran;
    for (int32_t isa : runnable_isas()) {
        ran += " " + isa_name(isa);
    }
    RecordProperty("instruction_sets", ran);
    for (int32_t isa : {TACHO_ISA_AVX2, TACHO_ISA_AVX512, TACHO_ISA_AVX512_VNNI, TACHO_ISA_AVX512_BF16,
                        TACHO_ISA_AMX}) {
        if (tacho_isa_check(isa) != TACHO_OK) {
            std::printf("[ not here ] %s\n", last_error().c_str());
        }
    }
    std::printf("[ tested   ]%s\n", ran.c_str());
    EXPECT_EQ(TACHO_OK, tacho_isa_check(TACHO_ISA_SCALAR));
    EXPECT_EQ(TACHO_OK, tacho_isa_check(TACHO_ISA_AUTO));
}

TEST(LibraryTest, AbiVersion) {
    EXPECT_EQ(TACHO_ABI_VERSION, tacho_abi_version());
}

TEST(LibraryTest, BuildInfoNamesWhatIsInside) {
    char text[256];
    ASSERT_EQ(TACHO_OK, tacho_build_info(text, sizeof text));
    const std::string info = text;
    EXPECT_EQ(0u, info.find("tacho "));
    EXPECT_NE(std::string::npos, info.find("isa: scalar")) << info;
    EXPECT_NE(std::string::npos, info.find("glibc 2.")) << info;
}

TEST(LibraryTest, TextsAreCutToTheirBuffer) {
    char text[6] = "#####";
    ASSERT_EQ(TACHO_OK, tacho_build_info(text, 4));
    EXPECT_STREQ("tac", text);
    EXPECT_EQ('#', text[4]);
    ASSERT_EQ(TACHO_OK, tacho_build_info(text, 1));
    EXPECT_STREQ("", text);
    EXPECT_EQ(TACHO_EINVAL, tacho_build_info(text, 0));
    EXPECT_EQ(TACHO_EINVAL, tacho_build_info(nullptr, 10));
    EXPECT_EQ(TACHO_EINVAL, tacho_last_error(nullptr, 10));
}

TEST(LibraryTest, EveryStatusHasAText) {
    for (int32_t status = -1; status < 6; ++status) {
        ASSERT_NE(nullptr, tacho_status_string(status));
        EXPECT_GT(std::strlen(tacho_status_string(status)), 1u);
    }
    EXPECT_STREQ("invalid argument", tacho_status_string(TACHO_EINVAL));
    EXPECT_STREQ("unknown status", tacho_status_string(1234567));
}

TEST(LibraryTest, ResolvesALimitToAnInstructionSet) {
    const std::vector<int32_t> isas = runnable_isas();
    int32_t isa = 0;
    ASSERT_EQ(TACHO_OK, tacho_isa_resolve(nullptr, &isa));
    EXPECT_EQ(isas.back(), isa);
    ASSERT_EQ(TACHO_OK, tacho_isa_resolve("", &isa));
    EXPECT_EQ(isas.back(), isa);
    ASSERT_EQ(TACHO_OK, tacho_isa_resolve("scalar", &isa));
    EXPECT_EQ(TACHO_ISA_SCALAR, isa);
    for (int32_t limit : isas) {
        ASSERT_EQ(TACHO_OK, tacho_isa_resolve(isa_name(limit).c_str(), &isa));
        EXPECT_EQ(limit, isa);
    }
    ASSERT_EQ(TACHO_OK, tacho_isa_resolve("amx", &isa));
    EXPECT_EQ(isas.back(), isa) << "what the CPU lacks gives the best below it";
}

TEST(LibraryTest, AnUnknownInstructionSetIsRefusedWithItsName) {
    int32_t isa = 77;
    EXPECT_EQ(TACHO_EINVAL, tacho_isa_resolve("avx1024", &isa));
    EXPECT_EQ(77, isa);
    EXPECT_NE(std::string::npos, last_error().find("avx1024")) << last_error();
    EXPECT_EQ(TACHO_EINVAL, tacho_isa_resolve("AVX2", &isa));
    EXPECT_EQ(TACHO_EINVAL, tacho_isa_resolve("scalar", nullptr));
    EXPECT_EQ(TACHO_EINVAL, tacho_isa_check(7));
    EXPECT_EQ(TACHO_EINVAL, tacho_isa_check(-1));
    EXPECT_NE(std::string::npos, last_error().find("-1")) << last_error();
}

/* The environment is read once, so each word needs a process of its own. */
int check_auto_with(const char* word) {
    setenv("TACHO_MAX_ISA", word, 1);
    const int32_t status = tacho_isa_check(TACHO_ISA_AUTO);
    if (status == TACHO_EINVAL && last_error().find(word) == std::string::npos) {
        return -1;
    }
    return status;
}

TEST(LibraryDeathTest, AutoFollowsTheEnvironment) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(std::_Exit(check_auto_with("sse9")), testing::ExitedWithCode(TACHO_EINVAL), "");
    EXPECT_EXIT(std::_Exit(check_auto_with("scalar")), testing::ExitedWithCode(TACHO_OK), "");
    EXPECT_EXIT(std::_Exit(check_auto_with("")), testing::ExitedWithCode(TACHO_OK), "");
}

TEST(LibraryTest, MappedMemoryIsAlignedAndZero) {
    for (int64_t bytes : {int64_t{1}, int64_t{5000}, int64_t{2} << 20, (int64_t{4} << 20) + 1}) {
        void* memory = nullptr;
        ASSERT_EQ(TACHO_OK, tacho_memory_map(bytes, &memory)) << last_error();
        const uintptr_t alignment = bytes < 2 << 20 ? 64 : 2 << 20;
        EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(memory) % alignment);
        auto* from = static_cast<uint8_t*>(memory);
        EXPECT_EQ(0, from[0]);
        EXPECT_EQ(0, from[bytes - 1]);
        std::memset(memory, 1, static_cast<size_t>(bytes));
        EXPECT_EQ(TACHO_OK, tacho_memory_unmap(memory, bytes));
    }
    void* memory = nullptr;
    EXPECT_EQ(TACHO_EINVAL, tacho_memory_map(0, &memory));
    EXPECT_EQ(TACHO_EINVAL, tacho_memory_map(1, nullptr));
    EXPECT_EQ(TACHO_EINVAL, tacho_memory_unmap(nullptr, 1));
    EXPECT_EQ(TACHO_EINTERNAL, tacho_memory_map(int64_t{1} << 46, &memory));
    EXPECT_EQ(nullptr, memory);
}

TEST(LibraryTest, LastErrorBelongsToTheThread) {
    EXPECT_EQ(TACHO_EINVAL, tacho_isa_check(99));
    const std::string mine = last_error();
    std::string fresh = "unset";
    std::thread other([&] {
        fresh = last_error();
        tacho_isa_check(55);
    });
    other.join();
    EXPECT_EQ("", fresh);
    EXPECT_EQ(mine, last_error());
}

}  // namespace
}  // namespace tacho_test
