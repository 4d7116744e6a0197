// NumPy's broadcasting of dims of which some are symbols: what the result's dims are (infer.h's BroadcastDims is made of
// it), and where an operand is read. That operands do broadcast is for assumed_dims.h.
#pragma once

#include "compiler/ir/prim_expr.h"

namespace ingot::op {

// NumPy's broadcasting of two dims: the other one where one is 1. Of symbols of which nothing is proved the result is
// a formula, Select(a == 1, b, a); a dim that it was made of changes nothing when it meets it again.
ir::PrimExpr BroadcastDim(const ir::PrimExpr& a, const ir::PrimExpr& b);
// Whether dims that broadcast are equal: what is proved to be 1 with the other one alone.
bool BroadcastAsEqual(const ir::PrimExpr& a, const ir::PrimExpr& b);
// The index of an operand's axis of extent `own` for an index of the result's axis of extent `extent`: the same, or 0
// where the operand repeats.
ir::PrimExpr BroadcastIndex(const ir::PrimExpr& own, const ir::PrimExpr& extent, const ir::PrimExpr& index);

}  // namespace ingot::op
