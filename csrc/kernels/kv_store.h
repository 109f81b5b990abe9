// Writing keys and values of new tokens to their slots.
#pragma once

#include "paged_layer.h"

namespace headway {

// Head i of token t is at rows + t * row_stride + i * head_dim: kv_heads keys, then kv_heads values.
struct KvStore {
    PagedLayer kv;
    const void* rows;
    const int64_t* slots;  // [tokens]
    int64_t tokens, row_stride;
    Dtype dtype;  // of rows: that of kv, or any with kv in int8

    template <class Resize>
    void resize(const Resize& to) {
        tokens = to(tokens);
    }
};

// As KvStore with `heads` query heads before the keys; queries are turned in place, keys on their way to their slots. What turns are the
// first 2 * half numbers of a head, by cos and sin as `Rotate` (rotate.h) has them.
struct RotateAndStore {
    PagedLayer kv;
    void* rows;
    const int64_t* slots;
    const void* cos;  // dtype, [tokens][2 * half], rows table_stride apart
    const void* sin;
    int64_t tokens, heads, half, row_stride, table_stride;
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        tokens = to(tokens);
    }
};

}  // namespace headway
