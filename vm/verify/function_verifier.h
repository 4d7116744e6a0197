// Everything that loading proves about one function, except for its flow (vm/verify/flow_verifier.h): form of operands,
// ids, labels, then one linear pass over the types of what instructions read and write, then the memory plan.
#pragma once

#include "vm/program/checks.h"
#include "vm/program/program.h"

namespace ingot::vm {

// The tables that the function refers to, and all signatures, are verified already. Subtracts the work at calls from
// `work_left`, which all functions of a program share, and fails when none is left.
Verdict VerifyFunction(const Program& program, const Function& function, const CheckSet& checks, int64_t& work_left);

}  // namespace ingot::vm
