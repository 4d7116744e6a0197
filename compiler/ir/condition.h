// Conditions as lists of conjuncts.
#pragma once

#include <vector>

#include "compiler/ir/prim_expr.h"

namespace ingot::ir {

// The parts that And joins, from left to right; a condition that is no And is its own single part.
std::vector<PrimExpr> ConjunctsOf(const PrimExpr& condition);

}  // namespace ingot::ir
