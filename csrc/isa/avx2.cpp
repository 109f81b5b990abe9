#define HEADWAY_SET avx2
#include "kernels_of_this_set.h"
