// The entries of a function's memory plan: places of the arena, each with the range of instructions in which it is
// alive. Owns the map from registers to the entries whose memory they show.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "vm/program/program_builder.h"

namespace ingot::lower {

class PlanEntries {
 public:
  explicit PlanEntries(vm::FunctionBuilder& builder) : builder_(builder) {}

  // Adds an entry and returns the register of the tensor that lies there.
  vm::RegisterId Place(vm::Type type, DimCode offset, DimCode size, std::vector<DimCode> dims);
  // Records that `to`, a view or another name of the arena tensor in `from`, belongs to the same entry.
  void Follow(vm::RegisterId to, vm::RegisterId from);
  // Sets the live ranges when all code is emitted: from an entry's plan_view to the last instruction that mentions a
  // register that shows the entry.
  void SetLiveRanges();

 private:
  vm::FunctionBuilder& builder_;
  std::unordered_map<uint32_t, uint32_t> entry_of_;  // register -> plan entry
};

}  // namespace ingot::lower
