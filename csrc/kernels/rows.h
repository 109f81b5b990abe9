// Moving and adding rows: rows of a table by index, a residual stream plus something, logits as the sampler wants them.
#pragma once

#include <cstdint>

#include "../number.h"

namespace headway {

// out[r] = table[index[r]] * scale, or added[r] + that. An index outside the table gives a row of NaN, and is written to `wrong`.
struct Gather {
    void* out;  // dtype, rows of width
    const void* table;
    const void* added;     // dtype, rows of width; null without
    const int64_t* index;  // [rows]
    int64_t* wrong;
    int64_t rows, width, table_rows, table_stride;
    float scale;
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);  // the table keeps its size: that of a vocabulary may happen to be a recorded one
    }
};

// out[r] = residual[r] + scale * x[r], rounded once; out may be either.
struct AddScaled {
    void* out;
    const void* residual;
    const void* x;
    int64_t rows, width;  // rows without gaps
    float scale;
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

// out[r] = x[r] in float32, divided by divisor; with a softcap c > 0 then c * tanh(that / c). out may be x when that is float32.
struct FinishLogits {
    float* out;
    const void* x;
    int64_t rows, width;
    int64_t out_stride, x_stride;
    float divisor, softcap;
    Dtype dtype;

    template <class Resize>
    void resize(const Resize& to) {
        rows = to(rows);
    }
};

}  // namespace headway
