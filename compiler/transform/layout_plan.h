// Which images of a dataflow block are computed over channels in blocks, so that the block's windows and the
// conversions between the forms cost least together.
#pragma once

#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/transform/blocked_calls.h"

namespace ingot::transform {

struct PlannedCall {
  BlockedCall kind = BlockedCall::kNone;
  bool makes_blocks = false;
  WindowChoice window;  // of kWindow
};

// Returns the plan of each binding, in order.
std::vector<PlannedCall> PlanLayouts(const std::vector<ir::Binding>& bindings, const BlockedCalls& calls,
                                     const WeightBindings& weights);

}  // namespace ingot::transform
