// Powers whose exponents are small numbers.
#pragma once

#include <optional>

#include "compiler/ir/prim_expr.h"

namespace ingot::ir {

// Returns the exponent of a power of floats that code generation computes by products or a quotient: 1, 2, 3 or -1,
// as a literal. Nothing for other calls.
std::optional<double> ProductExponent(const PrimCallNode& call);

}  // namespace ingot::ir
