// The kernels of one instruction set. A kernel reads plain arguments and works with the other members of its team; it may use
// barriers inside, and leaves the last one to its caller. Each family has a header with its arguments (kernels/NAME.h: what the fields
// mean, shapes, what is promised) and one with its code (kernels/NAME.inl), which every instruction set compiles for itself.
#pragma once

#include "kernels/linear.h"
#include "kernels/linear_integer.h"
#include "kernels/activate.h"
#include "kernels/attention.h"
#include "kernels/kv_store.h"
#include "kernels/norm.h"
#include "kernels/rotate.h"
#include "kernels/rows.h"
#include "kernels/sampling.h"

namespace headway {

class Team;

struct KernelTable {
    const char* name;
    void (*float_linear)(const FloatLinear&, Team&);
    void (*float_pack)(const FloatPack&, Team&);
    void (*integer_linear)(const IntegerLinear&, Team&);
    void (*integer_pack)(const IntegerPack&, Team&);
    void (*kv_store)(const KvStore&, Team&);
    void (*rotate_and_store)(const RotateAndStore&, Team&);
    void (*attend)(const Attend&, Team&);
    void (*attend_rows)(const AttendRows&, Team&);
    void (*norm)(const Norm&, Team&);
    void (*rotary_tables)(const RotaryTables&, Team&);
    void (*rotate)(const Rotate&, Team&);
    void (*activate)(const Activate&, Team&);
    void (*gather)(const Gather&, Team&);
    void (*add_scaled)(const AddScaled&, Team&);
    void (*finish_logits)(const FinishLogits&, Team&);
    void (*argmax)(const Argmax&, Team&);
    void (*draw)(const Draw&, Team&);
    void (*rank)(const Rank&, Team&);
    void (*forbid)(const Forbid&, Team&);
};

}  // namespace headway
