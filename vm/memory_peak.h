// What a call of a function takes: formulas over its symbols for those who look at a file, and which tensor of the
// memory plan is to blame when there is not enough. Nothing is run or allocated. The program is verified.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "vm/plan_check.h"
#include "vm/program.h"

namespace ingot::vm {

struct MemoryNeeds {
  DimCode arenas;                // bytes of the function's memory plan: its peak
  DimCode results;               // bytes of the tensors of their own, the most that live at once, over its symbols
  bool depends_on_data = false;  // besides these there are tensors whose dims are no formulas over the symbols
  bool calls = false;            // it calls functions, which need memory of their own
  int64_t workspace_bytes = 0;   // the largest constant workspace of the program's kernels
  int64_t state_bytes = 0;       // of the program's states, which a context holds as long as it lives
  // Everything that is known: what a context needs for the first call with these symbols.
  Result<int64_t> Total(std::span<const int64_t> symbols) const;
};
// What every function of the program needs: workspace and states.
MemoryNeeds MemoryNeedsOf(const Program& program);
// That and what the function needs itself.
MemoryNeeds MemoryNeedsOf(const MemoryNeeds& of_program, const Function& function);

// Values of a signature's symbols: as given by name, as the dims of a parameter give them, else their upper bounds. A
// symbol that nothing says is not_found; a name that is none, or dims that do not fit, are bad input.
struct GivenShapes {
  std::vector<std::pair<std::string, int64_t>> symbols;
  std::vector<std::pair<std::string, std::vector<int64_t>>> parameters;
};
Result<std::vector<int64_t>> SymbolValues(const Signature& signature, const GivenShapes& given);

// Where most bytes of the plan live at once, and the largest tensor among them: such as
// "\"lv12\" float32[64, 512] (131072 bytes)". Empty for a plan without entries.
std::string DominatingTensor(const Function& function, const PlanNumbers& numbers);

}  // namespace ingot::vm
