// Puts instructions between those of a finished function.
#pragma once

#include <vector>

#include "vm/program/program.h"

namespace ingot::lower {

// Per instruction of a function: what comes directly before and behind it. A jump to an instruction arrives at what
// comes before it.
struct Insertions {
  explicit Insertions(const vm::Function& function) : before(function.code.size()), behind(function.code.size()) {}
  std::vector<std::vector<vm::Instruction>> before, behind;
};

// Adjusts labels, notes and live ranges of the plan, which begin and end at the instructions where they did.
void InsertInstructions(vm::Function& function, Insertions insertions);

}  // namespace ingot::lower
