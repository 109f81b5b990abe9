#include "cpu.h"

namespace headway {

#if defined(__x86_64__)
const KernelTable& avx2_table();
const KernelTable& avx512_table();
const KernelTable& avx512_bf16_table();

namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }

bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni"); }

struct Set {
    const char* name;
    bool (*usable)();
    const KernelTable& (*table)();
};

const Set sets[] = {
    {"avx512_bf16", has_avx512_bf16, avx512_bf16_table},
    {"avx512", has_avx512, avx512_table},
    {"avx2", has_avx2, avx2_table},
};

}  // namespace

std::vector<std::string> usable_sets() {
    std::vector<std::string> found;
    for (const Set& set : sets)
        if (set.usable()) found.push_back(set.name);
    return found;
}

const KernelTable* table_of(const std::string& name) {
    for (const Set& set : sets)
        if (name == set.name && set.usable()) return &set.table();
    return nullptr;
}
#endif

}  // namespace headway
