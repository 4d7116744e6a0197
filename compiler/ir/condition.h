// Conditions as lists of conjuncts, and what of them is known around the lets inside of which they stand.
#pragma once

#include <unordered_set>
#include <vector>

#include "compiler/ir/prim_expr.h"

namespace ingot::ir {

// The parts that And joins, from left to right; a condition that is no And is its own single part.
std::vector<PrimExpr> ConjunctsOf(const PrimExpr& condition);

// Whether the expression mentions one of the variables: one of the lets', it means nothing around them.
bool MentionsAny(const PrimExpr& expr, const std::unordered_set<const PrimVarNode*>& vars);

}  // namespace ingot::ir
