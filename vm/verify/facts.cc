// Substitution over the postfix steps of dimension code, and one pass over a function that finds the int registers
// which are written once.
#include "vm/verify/facts.h"

namespace ingot::vm {

Dim SubstituteSlots(const DimCode& code, const std::vector<Dim>& slots) {
  if (code.is_constant()) return code;
  std::vector<DimCode> stack;
  for (const DimStep& step : code.steps()) {
    if (step.op == DimOp::kConst) {
      stack.emplace_back(step.value);
    } else if (step.op == DimOp::kSlot) {
      const auto slot = static_cast<size_t>(step.value);
      if (slot >= slots.size() || !slots[slot]) return std::nullopt;
      stack.push_back(*slots[slot]);
    } else if (step.op == DimOp::kSelect) {
      const DimCode if_false = std::move(stack.back());
      stack.pop_back();
      const DimCode if_true = std::move(stack.back());
      stack.pop_back();
      stack.back() = DimCode::Select(stack.back(), if_true, if_false);
    } else {
      const DimCode b = std::move(stack.back());
      stack.pop_back();
      stack.back() = DimCode::Binary(step.op, stack.back(), b);
    }
    if (!stack.back().fits()) return std::nullopt;
  }
  return std::move(stack.back());
}

FunctionFacts::FunctionFacts(const Function& function) : known_(function.registers.size()) {
  const size_t num_symbols = function.signature.symbols.size();
  const size_t num_fixed = num_symbols + function.signature.params.size();
  for (size_t i = 0; i < num_symbols; ++i) known_[i] = DimCode::Slot(static_cast<int64_t>(i));
  // Parameters count as written once by the caller.
  std::vector<uint8_t> writes(function.registers.size(), 0);
  for (size_t i = 0; i < num_fixed; ++i) writes[i] = 1;
  for (const Instruction& instruction : function.code) {
    ForEachRegister(instruction, [&](uint32_t index, bool is_written) {
      if (is_written && writes[index] < 2) ++writes[index];
    });
  }
  // A register written once has, wherever it may be read, the value of that write; a read before it is refused.
  for (const Instruction& instruction : function.code) {
    if (instruction.opcode == Opcode::kConstInt && writes[instruction.reg(0)] == 1) {
      known_[instruction.reg(0)] = DimCode(instruction.scalar(1));
    } else if (instruction.opcode == Opcode::kDim && writes[instruction.reg(0)] == 1) {
      known_[instruction.reg(0)] = OverSymbols(instruction.dim(1));
    }
  }
}

std::vector<std::vector<Dim>> KnownExtents(const Kernel& kernel, const RegisterList& ints, const FunctionFacts& facts) {
  std::vector<Dim> arguments;
  arguments.reserve(ints.size());
  for (uint32_t index : ints) arguments.push_back(facts.known(index));
  std::vector<std::vector<Dim>> extents;
  extents.reserve(kernel.params.size());
  for (const KernelParam& param : kernel.params) {
    std::vector<Dim>& dims = extents.emplace_back();
    for (const DimCode& extent : param.extents) dims.push_back(SubstituteSlots(extent, arguments));
  }
  return extents;
}

}  // namespace ingot::vm
