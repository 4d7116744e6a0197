// The memory that a call of a function takes, as formulas over its symbols, for tools that show a file; and which
// tensor of the memory plan to name when there is not enough. Nothing is run or allocated. The program is verified.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "vm/program/program.h"
#include "vm/verify/plan_check.h"

namespace ingot::vm {

struct MemoryNeeds {
  DimCode arenas;                // bytes of the function's memory plan: its peak
  DimCode results;               // bytes of the tensors that are allocated one by one, the most that live at once
  bool depends_on_data = false;  // more tensors are not counted: of data-dependent dims, or too many for a formula
  bool calls = false;            // it calls functions, whose memory is not counted
  int64_t workspace_bytes = 0;   // the largest constant workspace of the program's kernels
  int64_t state_bytes = 0;       // of the program's states, which a context holds as long as it lives
  // The sum of all known parts, in bytes, for these values of the symbols. Bad input when it overflows 64 bits.
  Result<int64_t> Total(std::span<const int64_t> symbols) const;
};
// The needs of every function of the program: workspace and states.
MemoryNeeds MemoryNeedsOf(const Program& program);
// The program's needs and the function's own.
MemoryNeeds MemoryNeedsOf(const MemoryNeeds& of_program, const Function& function);

// Values of a signature's symbols: as given by name, as the dims of a parameter give them, else their upper bounds. A
// symbol without value or upper bound is not_found; unknown names, and dims that do not fit, are bad input.
struct GivenShapes {
  std::vector<std::pair<std::string, int64_t>> symbols;
  std::vector<std::pair<std::string, std::vector<int64_t>>> parameters;
};
Result<std::vector<int64_t>> SymbolValues(const Signature& signature, const GivenShapes& given);

// The largest tensor among those that are alive where the plan has the most live bytes, such as
// "\"lv12\" float32[64, 512] (131072 bytes)". Empty for a plan without entries.
std::string DominatingTensor(const Function& function, const PlanNumbers& numbers);

}  // namespace ingot::vm
