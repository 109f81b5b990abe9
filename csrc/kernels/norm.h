// RMSNorm of rows.
#pragma once

#include <cstdint>

#include "../number.h"

namespace headway {

// out[r] = x[r] / sqrt(mean(x[r]^2) + epsilon) * weight. Rows may be strided, numbers of a row are neighbours; out may be x.
struct RmsNorm {
    void* out;           // dtype, rows of `width`
    const void* x;       // dtype
    const void* weight;  // dtype, or float32 when `wide`: then the product is rounded once, else the normed row is rounded before it
    int64_t rows, width;
    int64_t out_stride, x_stride;  // numbers from one row to the next
    float epsilon;
    Dtype dtype;
    bool wide;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

}  // namespace headway
