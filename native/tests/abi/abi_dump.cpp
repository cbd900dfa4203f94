/*
 * Prints the C ABI as the compiler sees it, for the Java bindings to be compared with:
 *
 *   constant.TACHO_OK=0
 *   function.tacho_isa_check=(I)I                       arguments, result
 *   struct.tacho_counters=64,8                          size, alignment
 *   member.tacho_counters.calls=0,J                     offset, type; J[3] is an array
 *
 * I int32, J int64, F float, D double, P pointer, V void.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "tacho/tacho.h"

namespace {

template <class T>
std::string code() {
    if constexpr (std::is_array_v<T>) {
        return code<std::remove_extent_t<T>>() + "[" + std::to_string(std::extent_v<T>) + "]";
    } else if constexpr (std::is_void_v<T>) {
        return "V";
    } else if constexpr (std::is_pointer_v<T>) {
        return "P";
    } else if constexpr (std::is_same_v<T, float>) {
        return "F";
    } else if constexpr (std::is_same_v<T, double>) {
        return "D";
    } else {
        static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "not a type of the ABI");
        return sizeof(T) == 4 ? "I" : "J";
    }
}

template <class Result, class... Arguments>
std::string signature(Result (*)(Arguments...)) {
    return "(" + (std::string() + ... + code<Arguments>()) + ")" + code<Result>();
}

}  // namespace

#define CONSTANT(name) std::printf("constant." #name "=%d\n", static_cast<int>(name));
#define FUNCTION(name) std::printf("function." #name "=%s\n", signature(static_cast<decltype(&name)>(nullptr)).c_str());
#define STRUCT(name) std::printf("struct." #name "=%zu,%zu\n", sizeof(name), alignof(name));
#define MEMBER(name, member)                                                     \
    std::printf("member." #name "." #member "=%zu,%s\n", offsetof(name, member), \
                code<decltype(name::member)>().c_str());

int main() {
#include "abi.inc"
    return 0;
}
