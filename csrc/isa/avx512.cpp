#define HEADWAY_SET avx512
#include "kernels_of_this_set.h"
