// The kernels of one instruction set. A kernel reads plain arguments and works with the other members of its team; it may use
// barriers inside, and leaves the last one to its caller. Each family has a header with its arguments (kernels/NAME.h: what the fields
// mean, shapes, what is promised) and one with its code (kernels/NAME.inl), which every instruction set compiles for itself.
#pragma once

#include "kernels/norm.h"

namespace headway {

class Team;

struct KernelTable {
    const char* name;
    void (*rms_norm)(const RmsNorm&, Team&);
};

}  // namespace headway
