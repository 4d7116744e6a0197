// What is known about a function's integers before it runs: registers whose value is, in every activation, one
// formula over the symbols. The verifier proves extents with it, and the linker drops the checks that are proved: both
// ask here, so that they cannot disagree. Works on functions whose operands have been checked for form and range.
#pragma once

#include <optional>
#include <vector>

#include "vm/program/program.h"

namespace ingot::vm {

// The code with each slot s replaced by slots[s]; unknown when a replacement is unknown, or when the result has more
// steps than dimension code may have.
Dim SubstituteSlots(const DimCode& code, const std::vector<Dim>& slots);

// Calls visit(register, is_written) for the register operands in order; registers in formulas are left out.
template <typename Visit>
void ForEachRegister(const Instruction& instruction, Visit visit) {
  const std::span<const OperandSpec> specs = InfoOf(instruction.opcode).operands;
  for (size_t i = 0; i < specs.size(); ++i) {
    const OperandKind kind = specs[i].kind;
    if (kind == OperandKind::kDef || kind == OperandKind::kUse) visit(instruction.reg(i), kind == OperandKind::kDef);
    if (kind != OperandKind::kDefList && kind != OperandKind::kUseList) continue;
    for (uint32_t index : instruction.registers(i)) visit(index, kind == OperandKind::kDefList);
  }
}

class FunctionFacts {
 public:
  explicit FunctionFacts(const Function& function);

  // The formula of an int register over the symbols; unknown unless its only write says so.
  const Dim& known(uint32_t register_index) const { return known_[register_index]; }
  // A formula over registers, as one over symbols.
  Dim OverSymbols(const DimCode& over_registers) const { return SubstituteSlots(over_registers, known_); }

 private:
  std::vector<Dim> known_;
};

// What is known about a kernel call: each parameter's extents over the caller's symbols.
std::vector<std::vector<Dim>> KnownExtents(const Kernel& kernel, const RegisterList& ints, const FunctionFacts& facts);

}  // namespace ingot::vm
