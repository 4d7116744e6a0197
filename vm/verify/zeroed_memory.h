// Finds the memory that has to be zeroed before a function sees it, because a function could read bytes that nobody
// wrote. A tensor is proved to be written when, on every path from the instruction that makes it, the first instruction
// that mentions its register writes all of it: a kernel through an out parameter (whose extents are compared with the
// tensor's dims), a builtin through one, or copy_into. A view of the whole tensor that the next instruction makes
// counts as the tensor by another name.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/program/program.h"

namespace ingot::vm {

// The indexes of the instructions alloc, alloc_output and plan_view whose tensors are not proved to be written,
// ascending.
std::vector<uint32_t> FindUnproved(const Program& program, const Function& function);

}  // namespace ingot::vm
