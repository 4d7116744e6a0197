// Registers that hold counted values (owned tensors, tuples, strings, closures) give them up at their last use:
// without it they would keep their memory until the function returns, or the loop comes round again.
#pragma once

#include "vm/program.h"

namespace ingot::lower {

// Inserts `release` instructions. In: a finished function, labels, notes and live ranges of the plan included. Out: the
// same computation. What is used last just before the function returns is left to the return, which drops it all.
void ReleaseAtLastUse(vm::Function& function);

}  // namespace ingot::lower
