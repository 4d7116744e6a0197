// WrittenBeforeRead: a worklist over basic blocks with one bit per register, "written and not released on every path
// to here". Operands are known to be in range.
#pragma once

#include "vm/program/checks.h"
#include "vm/program/program.h"

namespace ingot::vm {

// Subtracts its work from `work_left`, which all functions of a program share, and fails when none is left.
Verdict VerifyFlow(const Function& function, const CheckSet& checks, int64_t& work_left);

}  // namespace ingot::vm
