// Releases registers that hold counted values (owned tensors, tuples, strings, closures) at their last use. Otherwise
// they would keep their memory until the function returns or the loop writes them again.
#pragma once

#include "vm/program/program.h"

namespace ingot::lower {

// Inserts `release` instructions into a finished function and adjusts labels, notes and live ranges of the plan. The
// computation stays the same. Registers before `first_register` are left alone, and those used last just before the
// function returns are left to the return.
void ReleaseAtLastUse(vm::Function& function, uint32_t first_register = 0);

}  // namespace ingot::lower
