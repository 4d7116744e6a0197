// The checks that hold per operand kind, whatever the opcode: form, register range and kind, ids, labels, formulas'
// slots, streams. A new opcode inherits all of them from its row. What depends on the opcode is verified by
// vm/verify/function_verifier.h.
#pragma once

#include "vm/program/checks.h"
#include "vm/program/program.h"

namespace ingot::vm {

// Verifies all operands of a function, whose code is not empty.
Verdict VerifyOperands(const Program& program, const Function& function, const CheckSet& checks);
// 'instruction 3 (jump)'.
std::string InstructionName(const Function& function, size_t index);

}  // namespace ingot::vm
