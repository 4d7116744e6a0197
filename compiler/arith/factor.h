// FactorSums: what Analyzer::Simplify multiplied out as products again, where formulas have to be short: the sizes of
// launches, of workspace, and of tensors whose dims are symbols.
#pragma once

#include "compiler/ir/prim_expr.h"

namespace ingot::arith {

// An equal expression whose sums have the factors that their terms share outside of brackets, also those that are sums
// themselves: a * b + 3 * a + 3 * b + 9 is (a + 3) * (b + 3). It uses no bounds of variables.
ir::PrimExpr FactorSums(const ir::PrimExpr& expr);

}  // namespace ingot::arith
