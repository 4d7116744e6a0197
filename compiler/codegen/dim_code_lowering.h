// LowerToDimCode: an integer PrimExpr over given variables as DimCode. Used for extents, workspace sizes, memory plans
// and the shape arithmetic of graph functions.
#pragma once

#include <span>

#include "compiler/ir/prim_expr.h"
#include "runtime/dim_code.h"
#include "runtime/status.h"

namespace ingot::codegen {

// slots[i] is the variable that slot i holds. Fails (kUnsupportedModel) on a variable that has no slot, on operations
// that DimCode lacks (truncating division of what may be negative, narrowing casts, loads, calls), and on more than
// DimCode::kMaxSteps steps.
Result<DimCode> LowerToDimCode(const ir::PrimExpr& expr, std::span<const ir::PrimVar> slots);

}  // namespace ingot::codegen
