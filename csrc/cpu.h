// Which instruction set's kernels run here: the best that the processor, the system and the build have.
#pragma once

#include <string>
#include <vector>

#include "kernel_table.h"

namespace headway {

// Names of the instruction sets that can run here, best first. Empty: none.
std::vector<std::string> usable_sets();

// The kernels of a set; nullptr for one that cannot run here.
const KernelTable* table_of(const std::string& set);

}  // namespace headway
