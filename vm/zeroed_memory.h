// Which memory that a function makes is zeroed before the function sees it. A tensor is proved to be written when, on
// every path from where it is made, the first instruction that mentions its register writes all of it: a kernel by an
// out parameter (whose extents are compared with the tensor's dims), a builtin by one, or copy_into. A view of all of it
// that is made at once is the tensor by another name. What is not proved would show bytes that nobody wrote.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/program.h"

namespace ingot::vm {

// Instructions alloc, alloc_output and plan_view that are not proved, ascending.
std::vector<uint32_t> FindUnproved(const Program& program, const Function& function);

}  // namespace ingot::vm
