#define HEADWAY_SET avx512_bf16
#include "kernels_of_this_set.h"
