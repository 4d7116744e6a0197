// How long an expression is.
#pragma once

#include <limits>

#include "compiler/ir/prim_expr.h"

namespace ingot::ir {

// Counts the nodes of an expression, up to a limit.
int CountNodes(const PrimExpr& expr, int limit = std::numeric_limits<int>::max());

}  // namespace ingot::ir
