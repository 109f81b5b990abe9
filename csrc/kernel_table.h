// The kernels of one instruction set. A kernel reads plain arguments and works with the other members of its team; it may use
// barriers inside, and leaves the last one to its caller. Each family has a header with its arguments (kernels/NAME.h: what the fields
// mean, shapes, what is promised) and one with its code (kernels/NAME.inl), which every instruction set compiles for itself.
#pragma once

#include "kernels/linear.h"
#include "kernels/activate.h"
#include "kernels/norm.h"
#include "kernels/rotate.h"
#include "kernels/rows.h"

namespace headway {

class Team;

struct KernelTable {
    const char* name;
    void (*float_linear)(const FloatLinear&, Team&);
    void (*float_pack)(const FloatPack&, Team&);
    void (*norm)(const Norm&, Team&);
    void (*rotary_tables)(const RotaryTables&, Team&);
    void (*rotate)(const Rotate&, Team&);
    void (*activate)(const Activate&, Team&);
    void (*gather)(const Gather&, Team&);
    void (*add_scaled)(const AddScaled&, Team&);
    void (*finish_logits)(const FinishLogits&, Team&);
};

}  // namespace headway
