// Texts for run-time failures: where something happened and what was expected there, in the names of the source. They
// are made only after an invocation has failed, so nothing here needs to be fast.
#pragma once

#include <span>
#include <string>

#include "vm/program/program.h"

namespace ingot::vm {

// The debug map's text for an instruction, "" when it has none; the pointer is the function's.
const char* SourceOperation(const Function& function, uint32_t instruction);

// "softmax, instruction 4" by the debug map, "call_kernel (instruction 4)" without.
std::string DescribeInstruction(const Function& function, uint32_t instruction);

// "parameter \"x\"", "symbol \"n\"", or "r5".
std::string DescribeRegister(const Function& function, RegisterId id);

// A type over a signature's symbols with the values of those that its dims name: "float32[n, 4] with n = 3".
std::string DescribeExpected(const Type& type, const Signature& signature, std::span<const int64_t> symbols);
// "n + 1 = 3", or "3" of a constant and of what is not known. Of a dim that chooses among others (one that broadcasts)
// the symbol that it chose is shown, where it is the last alternative.
std::string DescribeDim(const Dim& dim, int64_t value, const Signature& signature, std::span<const int64_t> symbols);

}  // namespace ingot::vm
