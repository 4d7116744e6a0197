// An entry's first instruction is its plan_view; its last one is found when all instructions are there.
#include "compiler/lower/plan_entries.h"

#include <utility>

#include "vm/verify/facts.h"

namespace ingot::lower {

vm::RegisterId PlanEntries::Place(vm::Type type, DimCode offset, DimCode size, std::vector<DimCode> dims) {
  const uint32_t now = builder_.next_instruction();
  const vm::PlanEntryId entry = builder_.AddPlanEntry({0, std::move(offset), std::move(size), now, now, std::nullopt});
  const vm::RegisterId dst = builder_.AddRegister(std::move(type));
  builder_.PlanView(dst, entry, std::move(dims));
  entry_of_[dst.value] = entry.value;
  return dst;
}

void PlanEntries::Follow(vm::RegisterId to, vm::RegisterId from) {
  if (auto it = entry_of_.find(from.value); it != entry_of_.end()) entry_of_[to.value] = it->second;
}

void PlanEntries::SetLiveRanges() {
  if (entry_of_.empty()) return;
  const std::vector<vm::Instruction>& code = builder_.code();
  for (uint32_t pc = 0; pc < code.size(); ++pc) {
    vm::ForEachRegister(code[pc], [&](vm::RegisterId id, bool) {
      if (auto it = entry_of_.find(id.value); it != entry_of_.end()) builder_.plan().entries[it->second].last = pc;
    });
  }
}

}  // namespace ingot::lower
