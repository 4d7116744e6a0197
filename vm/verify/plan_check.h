// Memory plans as numbers: evaluated for given symbols, and proved to be sound. The verifier does this for plans
// without symbols when a file is opened, a context whenever it sees new symbol values.
#pragma once

#include <span>
#include <vector>

#include "vm/program/checks.h"
#include "vm/program/program.h"

namespace ingot::vm {

struct PlanNumbers {
  std::vector<int64_t> arena_sizes;
  std::vector<int64_t> offsets;  // per entry
  std::vector<int64_t> sizes;
};

// Whether nothing in the plan depends on symbols.
bool IsConstantPlan(const MemoryPlan& plan);
// Fails where a formula overflows. The plan's ids are checked already (PlanForm).
Result<PlanNumbers> EvaluatePlan(const MemoryPlan& plan, std::span<const int64_t> symbols);
// PlanBounds and PlanOverlap.
Verdict CheckPlanNumbers(const MemoryPlan& plan, const PlanNumbers& numbers, const CheckSet& checks);

}  // namespace ingot::vm
