// Numbers that activations are made of, and strided rows of them.
#pragma once

#include <cstdint>

namespace headway {

enum class Dtype : int { float32 = 0, bfloat16 = 1 };

struct bf16 {
    uint16_t bits;
};

}  // namespace headway
