// A comparison as a bound on one variable: the value from which on it holds, or up to which it holds. Loops are
// partitioned at such values.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/arith/analyzer.h"

namespace ingot::arith {

// coefficient * var + rest >= 0
struct LinearBound {
  int64_t coefficient;  // not 0
  ir::PrimExpr rest;    // over other variables

  // True: the comparison holds from Place() on; false: it holds below Place().
  bool holds_after() const { return coefficient > 0; }
  // The least value of the variable at which the comparison holds (or no longer holds), with this value for `rest`.
  ir::PrimExpr PlaceFor(const ir::PrimExpr& value_of_rest) const;
  ir::PrimExpr Place() const { return PlaceFor(rest); }
};

// The bound that an integer comparison (<, <=, >, >=) sets to the variable; nothing unless the comparison is linear in
// it with a constant coefficient.
std::optional<LinearBound> BoundOf(const ir::PrimExpr& comparison, const ir::PrimVar& var, Analyzer& analyzer);

}  // namespace ingot::arith
