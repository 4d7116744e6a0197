#include "compiler/lower/insert_instructions.h"

#include <utility>

namespace ingot::lower {

void InsertInstructions(vm::Function& function, Insertions insertions) {
  std::vector<vm::Instruction> code;
  std::vector<uint32_t> labels, positions;  // old index -> where jumps arrive, where the instruction is
  for (size_t pc = 0; pc < function.code.size(); ++pc) {
    labels.push_back(static_cast<uint32_t>(code.size()));
    for (vm::Instruction& in : insertions.before[pc]) code.push_back(std::move(in));
    positions.push_back(static_cast<uint32_t>(code.size()));
    code.push_back(std::move(function.code[pc]));
    for (vm::Instruction& in : insertions.behind[pc]) code.push_back(std::move(in));
  }
  positions.push_back(static_cast<uint32_t>(code.size()));
  for (vm::Instruction& in : code) {
    for (const auto& [spec, value] : in.operands()) {
      if (spec.kind == vm::OperandKind::kLabel) value = int64_t{labels[static_cast<size_t>(std::get<int64_t>(value))]};
    }
  }
  for (vm::DebugNote& note : function.notes) note.instruction = positions[note.instruction];
  for (vm::PlanEntry& entry : function.plan.entries) {
    entry.first = positions[entry.first];
    entry.last = positions[entry.last];
  }
  function.code = std::move(code);
}

}  // namespace ingot::lower
