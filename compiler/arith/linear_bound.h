// A comparison as a bound on one variable: from where on it holds, or until where. Loops are partitioned there.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/arith/analyzer.h"

namespace ingot::arith {

// coefficient * var + rest >= 0
struct LinearBound {
  int64_t coefficient;  // not 0
  ir::PrimExpr rest;    // over other variables

  // It holds from Place() on (else before it).
  bool holds_after() const { return coefficient > 0; }
  // The least value of the variable at which it holds, or no longer holds, were `rest` this.
  ir::PrimExpr PlaceFor(const ir::PrimExpr& value_of_rest) const;
  ir::PrimExpr Place() const { return PlaceFor(rest); }
};

// Of an integer comparison (<, <=, >, >=) that is linear in the variable with a constant coefficient; else nothing.
std::optional<LinearBound> BoundOf(const ir::PrimExpr& comparison, const ir::PrimVar& var, Analyzer& analyzer);

}  // namespace ingot::arith
