// Linear layers whose weight is codes of 4 or 8 bits with scales; activations become codes of 8 bits, with a scale for
// each row and group of inputs. (One scale for a whole row raised the perplexity of SmolLM2 135M by 4 %.)
#pragma once

#include <cstdint>

#include "linear.h"

namespace headway {

// w[o][i] = multipliers[o] * (scale of o and i's group * (code - offset) + floor of o and i's group).
//
// A packed weight is panels (linear.h), a panel is groups of k, the last of which is filled up with zeros, and a group is
//   its 32 scales as float16, unless `plain`: then they are 1
//   its 32 floors as float16, when `floors`
//   steps of four k: 64 bytes (4 bits) or 128 (8 bits), in the order of linear_codes.inl.
// Codes are unsigned: 0 ... 15 with offset 0 or 8, 0 ... 255 with offset 128. The multipliers are all scales of a plain weight, otherwise
// powers of two, such that the largest scale of a channel lies in [1, 2).
struct IntegerForm {
    int32_t bits, offset;
    int64_t group;  // inputs that share scales; a multiple of 16
    bool plain, floors;
};

struct IntegerLinear {
    LinearOutput to;
    const void* x;             // x_dtype, rows of `inputs`
    const void* weight;        // panels, 64-byte aligned
    const float* multipliers;  // [channels], and up to a whole panel
    void* scratch;             // 64-byte aligned, for each row group + 12 bytes in each group
    IntegerForm form;
    int64_t rows, inputs, x_stride;
    Dtype x_dtype;

    template <class Resize>
    void resize(const Resize& to_size) {
        rows = to_size(rows);
    }
};

// Panels out of rows of codes.
struct IntegerPack {
    void* panels;
    float* multipliers;
    const uint8_t* codes;   // rows of `inputs` from channel `first` on, which begins a panel; the last chunk may end inside one
    const float* scales;    // [channels][groups], of a plain weight [channels]
    const float* floors;    // [channels][groups], when the form has them
    IntegerForm form;
    uint8_t flip;           // exclusive-or with every code: 0x80 makes signed codes unsigned
    int64_t channels, inputs, first;

    template <class Resize>
    void resize(const Resize&) {}
};

}  // namespace headway
