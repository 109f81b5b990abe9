// Rotary position embedding: the tables of a step, and turning the heads by them.
#pragma once

#include <cstdint>

#include "../number.h"

namespace headway {

// cos[r] and sin[r], rows of 2 * half: of the angles positions[r] * frequencies[i], times factor, first half and second half alike, but
// that the first half of sin is negative. Angles are float32 products; cosines and sines are exact to float32, then rounded to dtype.
struct RotaryTables {
    void* cos;
    void* sin;
    const int64_t* positions;
    const float* frequencies;  // [half]
    int64_t rows, half;
    float factor;
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

// x[r][h] = x * cos + partner * sin in place, where element i of the first half and i of the second are partners. Only the first
// 2 * half numbers of a head turn.
struct Rotate {
    void* x;
    const void* cos;  // [rows][2 * half]
    const void* sin;
    int64_t rows, heads, half;
    int64_t row_stride, head_stride, table_stride;  // in numbers
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

}  // namespace headway
