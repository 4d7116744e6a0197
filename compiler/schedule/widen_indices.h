// A schedule counts in int64: primitives make loops, iteration variables and index maps of that dtype, and intrinsics
// are written in it. A function that counts in narrower dtypes (T.int32() dimensions, loops over int32, as older
// exporters print them) is converted first. In: any tensor function. Out: the same function with int64 loops, iteration
// variables, dimensions and indices; its symbolic variables keep their names and their order, and values that were
// computed from a narrow variable are computed from it cast back. Counts are taken not to overflow their dtype.
#pragma once

#include <optional>

#include "compiler/ir/expr.h"

namespace ingot::schedule {

// The function itself when it counts in int64 already; nothing when a dimension is computed from a scalar parameter of
// another dtype, which callers pass.
std::optional<ir::PrimFunc> WidenIndices(const ir::PrimFunc& function);
// The same number as int64, over int64 variables of the same names.
ir::PrimExpr WidenIndex(const ir::PrimExpr& expr);

}  // namespace ingot::schedule
