// Activations element by element, and gates: an activation times the other half of the row.
#pragma once

#include <cstdint>

#include "../number.h"

namespace headway {

enum class Activation : int { silu = 0, gelu = 1, gelu_tanh = 2, relu = 3 };

// out[r][i] = activation(x[r][i]), times x[r][width + i] when `gated`. In float32, rounded once.
struct Activate {
    void* out;                // dtype
    const void* x;            // dtype, rows of width, or 2 * width when gated
    int64_t rows, width;
    int64_t out_stride, x_stride;  // numbers from one row to the next
    Activation activation;
    Dtype dtype;
    bool gated;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

}  // namespace headway
