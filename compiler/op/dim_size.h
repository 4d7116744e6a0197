// How long the formula of a dim may be. Formulas share their parts, so that a few calls can write one that is
// exponentially long when it is read as text, and the arithmetic on it recursive. Whatever walks a dim relies on this.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/ir/prim_expr.h"
#include "compiler/ir/type.h"
#include "runtime/status.h"

namespace ingot::op {

// Sums and products of kMaxNesting parts have fewer nodes.
inline constexpr int kMaxDimNodes = 2 * ir::kMaxNesting;

// Whether the formula has more than `limit` nodes, each counted as often as it is part of another. Takes `limit` steps.
bool IsLongerThan(const ir::PrimExpr& formula, int limit);

// Bad input if a dim in the type, or in a part of it, is too long.
Status CheckDimSizes(const ir::Type& type);

}  // namespace ingot::op
