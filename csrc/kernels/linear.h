// Linear layers: out = activation(x W^T + bias) + residual, with W repacked once into panels.
#pragma once

#include <cstdint>

#include "../number.h"
#include "activate.h"

namespace headway {

// Output channels of a panel. A packed weight is panels one after the other; in a panel lie, step of k after step of k, 4 bytes for
// each of its channels: one float32, two bfloat16 or four codes of 8 bits. Channels and inputs that do not exist are zeros;
// steps are filled up to a multiple of four.
constexpr int64_t panel_width = 32;

// What becomes of the float32 sums; rounded once, when they are stored.
struct LinearOutput {
    void* out;             // dtype, rows of `width`; may be the residual
    const float* bias;     // [width], or null
    const void* residual;  // dtype, rows of `width`, or null: added last
    int64_t width;
    int64_t out_stride, residual_stride;  // numbers from one row to the next
    Dtype dtype;
    bool activates;
    Activation activation;  // when it does
};

// Products of floating point. Numbers of a row of x are neighbours.
struct FloatLinear {
    LinearOutput to;
    const void* x;       // x_dtype, rows of `inputs`; what is not in the dtype of the weight may be rounded to it
    const void* weight;  // panels, 64-byte aligned
    void* scratch;       // 64-byte aligned, 4 bytes for each number of x and eight more in each row
    int64_t rows, inputs, x_stride;
    Dtype x_dtype, weight_dtype;

    template <class Resize>
    void resize(const Resize& to_size) {
        rows = to_size(rows);
    }
};

// Panels of float numbers out of rows of a plain weight.
struct FloatPack {
    void* panels;
    const void* weight;   // dtype, rows of `inputs` from channel `first` on, which begins a panel; the last chunk may end inside one
    int64_t channels, inputs, weight_stride, first;
    Dtype dtype;

    template <class Resize>
    void resize(const Resize&) {}
};

}  // namespace headway
