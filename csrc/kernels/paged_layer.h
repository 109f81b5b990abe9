// The keys and values of one layer, block by block, as src/headway/kernels/paged_kv.py lays them out.
#pragma once

#include <cstdint>

#include "../number.h"

namespace headway {

enum class KvDtype : int { float32 = 0, bfloat16 = 1, int8 = 2 };

// A token's key for kv head h lies at keys + h * head_stride + slot * head_dim, in numbers, where slot = block * block_size + offset in
// the block; its value likewise. int8: the number is code * scale, with key_scales[h * slots + slot], slots = head_stride / head_dim.
struct PagedLayer {
    void* keys;
    void* values;
    float* key_scales;    // int8 only
    float* value_scales;  // int8 only
    int64_t head_stride, kv_heads, head_dim, block_size;
    KvDtype dtype;
};

}  // namespace headway
