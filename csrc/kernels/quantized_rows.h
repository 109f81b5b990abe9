// Rows of activations as int8 with one scale each: what integer matrix products read, and what norms and gates may write directly.
#pragma once

#include <cstdint>

namespace headway {

// x[r][i] is about scales[r] * codes[r * stride + i]. scales[r] = max |x[r]| / 127, a code is x / scale rounded to nearest, ties to
// even, so it lies in [-127, 127]; a row of zeros has the scale 0 and codes 0. Codes from the width up to the stride are 0. A row with a
// NaN or an infinity has a scale of NaN: what is computed from it is NaN, as it would be without rounding.
struct QuantizedRows {
    int8_t* codes;   // 64-byte aligned
    float* scales;
    int64_t stride;  // bytes from one row to the next: `quantized_stride` of the width
};

constexpr int64_t quantized_stride(int64_t width) { return (width + 63) / 64 * 64; }

}  // namespace headway
