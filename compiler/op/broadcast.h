// NumPy's broadcasting of dims of which some are symbols: the result's dims (infer.h's BroadcastDims uses this), and
// the place where an operand is read. That operands do broadcast is an assumption of assumed_dims.h.
#pragma once

#include "compiler/ir/prim_expr.h"

namespace ingot::op {

// NumPy's broadcasting of two dims: the other one where one is 1. Where nothing is proved about symbols, the
// result is a formula, Select(a == 1, b, a); broadcasting it with one of its own dims again leaves it as it is.
ir::PrimExpr BroadcastDim(const ir::PrimExpr& a, const ir::PrimExpr& b);
// Whether two dims that broadcast must be equal: one is a symbol, and the other one is proved to be 1 exactly where the
// symbol is 1.
bool BroadcastAsEqual(const ir::PrimExpr& a, const ir::PrimExpr& b);
// The index of an operand's axis of extent `own` for an index of the result's axis of extent `extent`: the same, or 0
// where the operand repeats.
ir::PrimExpr BroadcastIndex(const ir::PrimExpr& own, const ir::PrimExpr& extent, const ir::PrimExpr& index);

}  // namespace ingot::op
