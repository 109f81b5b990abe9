// All kernels, compiled for one instruction set: HEADWAY_SET is its name, the compiler's flags say what it has. Everything is in a
// namespace of its own with internal linkage, so that no function compiled with newer instructions is ever used by an older set.
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "../kernel_table.h"
#include "../team.h"

namespace headway {
namespace {

#include "../simd/f32.h"

#include "../kernels/norm.inl"

}  // namespace

#define HEADWAY_JOIN_(a, b) a##b
#define HEADWAY_JOIN(a, b) HEADWAY_JOIN_(a, b)
#define HEADWAY_TEXT_(a) #a
#define HEADWAY_TEXT(a) HEADWAY_TEXT_(a)

const KernelTable& HEADWAY_JOIN(HEADWAY_SET, _table)() {
    static const KernelTable table = [] {
        KernelTable t{};
        t.name = HEADWAY_TEXT(HEADWAY_SET);
        t.rms_norm = rms_norm;
        return t;
    }();
    return table;
}

}  // namespace headway
