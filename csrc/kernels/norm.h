// RMSNorm and LayerNorm of rows, whole or head by head.
#pragma once

#include <cstdint>

#include "../number.h"

namespace headway {

// Every part of a row is normalised on its own: out[r][h] = norm(x[r][h]) * weight[h] (+ bias), over `width` numbers.
//   rms:    x / sqrt(mean(x^2) + epsilon)
//   layer:  (x - mean(x)) / sqrt(variance(x) + epsilon)
// With `residual` the result is added to it: out = residual + scale * normed. Numbers of a row are neighbours; out may be x or residual.
struct Norm {
    void* out;             // dtype
    const void* x;         // dtype
    const void* weight;    // dtype, or float32 when `wide`: then rms is rounded once, else the normed row is rounded before the product
    const void* bias;      // as weight, or null; layer only
    const void* residual;  // dtype, rows of out_stride; or null
    int64_t rows, heads, width;
    int64_t out_stride, x_stride;  // numbers from one row to the next
    float epsilon, scale;
    Dtype dtype;
    bool wide, layer;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

}  // namespace headway
