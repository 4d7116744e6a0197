// The parts of FunctionBuilder that are not generated from the opcode table: registers, labels, the plan, notes.
#include "vm/program/program_builder.h"

#include "runtime/check.h"

namespace ingot::vm {

FunctionBuilder::FunctionBuilder(std::string name, Signature signature, bool exported) {
  function_.name = std::move(name);
  function_.exported = exported;
  for (size_t i = 0; i < signature.symbols.size(); ++i) function_.registers.push_back(Type::Int());
  for (NamedType& param : signature.params) {
    // A tensor parameter is the caller's memory, whatever the signature's author wrote.
    if (param.type.is_tensor() && param.type.storage != Storage::kBorrowedMut) param.type.storage = Storage::kBorrowed;
    function_.registers.push_back(param.type);
  }
  function_.signature = std::move(signature);
}

RegisterId FunctionBuilder::AddRegister(Type type) {
  function_.registers.push_back(std::move(type));
  return RegisterId(static_cast<uint32_t>(function_.registers.size() - 1));
}

LabelId FunctionBuilder::NewLabel() {
  labels_.push_back(-1);
  return LabelId(static_cast<uint32_t>(labels_.size() - 1));
}

void FunctionBuilder::Bind(LabelId label) {
  INGOT_CHECK(label.value < labels_.size() && labels_[label.value] < 0, "a label is made by NewLabel and bound once");
  labels_[label.value] = next_instruction();
}

PlanEntryId FunctionBuilder::AddPlanEntry(PlanEntry entry) {
  function_.plan.entries.push_back(std::move(entry));
  return PlanEntryId(static_cast<uint32_t>(function_.plan.entries.size() - 1));
}

void FunctionBuilder::Note(std::string text) {
  std::vector<DebugNote>& notes = function_.notes;
  if (!notes.empty() && notes.back().instruction == next_instruction()) notes.pop_back();
  if (!notes.empty() && notes.back().text == text) return;
  notes.push_back({next_instruction(), std::move(text)});
}

void FunctionBuilder::Emit(Instruction instruction) { function_.code.push_back(std::move(instruction)); }

Operand FunctionBuilder::Encode(std::vector<RegisterId> registers) {
  RegisterList list;
  list.reserve(registers.size());
  for (RegisterId id : registers) list.push_back(id.value);
  return list;
}

Function FunctionBuilder::Finish() && {
  for (Instruction& instruction : function_.code) {
    for (const auto& [spec, value] : instruction.operands()) {
      if (spec.kind != OperandKind::kLabel) continue;
      const auto label = static_cast<size_t>(std::get<int64_t>(value));
      INGOT_CHECK(label < labels_.size() && labels_[label] >= 0, "a label that was never bound");
      value = labels_[label];
    }
  }
  return std::move(function_);
}

}  // namespace ingot::vm
