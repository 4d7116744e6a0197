// The verifier: proves what RELIABILITY's list "What loading proves" says about a decoded Program, in time and memory
// bounded by its size. A program that passes can be linked and run on stub kernels without any further trust; what
// native kernels do, no check can say. The rows are vm/checks.def.
#pragma once

#include "vm/checks.h"
#include "vm/program.h"

namespace ingot::vm {

// A failure names its place: 'function "main", instruction 3 (call_kernel): ... [KernelOperands]'.
Status Verify(const Program& program, const CheckSet& checks = CheckSet::All());

}  // namespace ingot::vm
