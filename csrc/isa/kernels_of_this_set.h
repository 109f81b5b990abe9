// All kernels, compiled for one instruction set: HEADWAY_SET is its name, the compiler's flags say what it has. Everything is in a
// namespace of its own with internal linkage, so that no function compiled with newer instructions is ever used by an older set.
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "../kernel_table.h"
#include "../team.h"

namespace headway {
namespace {

#include "../simd/f32.h"
#include "../simd/functions.h"
#include "../simd/square.h"
#include "../simd/i32.h"

#include "../kernels/activate.inl"
#include "../kernels/linear_output.inl"
#include "../kernels/linear_tiles.inl"
#include "../kernels/linear_float.inl"
#include "../kernels/linear_codes.inl"
#include "../kernels/linear_integer.inl"
#include "../kernels/linear_integer_pack.inl"
#include "../kernels/attention.inl"
#include "../kernels/kv_store.inl"
#include "../kernels/norm.inl"
#include "../kernels/rotate.inl"
#include "../kernels/rows.inl"

#include "../kernels/candidates.inl"
#include "../kernels/sampling.inl"

}  // namespace

#define HEADWAY_JOIN_(a, b) a##b
#define HEADWAY_JOIN(a, b) HEADWAY_JOIN_(a, b)
#define HEADWAY_TEXT_(a) #a
#define HEADWAY_TEXT(a) HEADWAY_TEXT_(a)

const KernelTable& HEADWAY_JOIN(HEADWAY_SET, _table)() {
    static const KernelTable table = [] {
        KernelTable t{};
        t.name = HEADWAY_TEXT(HEADWAY_SET);
        t.float_linear = float_linear;
        t.float_pack = float_pack;
        t.integer_linear = integer_linear;
        t.integer_pack = integer_pack;
        t.kv_store = kv_store;
        t.rotate_and_store = rotate_and_store;
        t.attend = attend;
        t.attend_rows = attend_rows;
        t.norm = norm;
        t.rotary_tables = rotary_tables;
        t.rotate = rotate;
        t.activate = activate;
        t.gather = gather;
        t.add_scaled = add_scaled;
        t.finish_logits = finish_logits;
        t.argmax = argmax;
        t.draw = draw;
        t.rank = rank;
        t.forbid = forbid;
        return t;
    }();
    return table;
}

}  // namespace headway
