// Where a formula of shape arithmetic is the number that the tensor has. Formulas are sums, products and quotients of
// integers without limits; a tensor's elements wrap around (int32, int64) or are rounded (float32, float64). A formula
// is kept where its bounds prove that nothing of this happens, or under conditions on the symbols, which a program
// checks before it takes the formula for a shape; the tensor is then computed by tensor operators. Without plausible
// conditions there is no formula.
//   in:  formulas of one node's results, and the conditions under which its inputs are what their formulas say;
//   out: the conditions of the results. It owns the list. A dim of a tensor counts as less than 2^31 here: where an int32
//        or a float would not hold a greater one, or a product of greater ones leaves int64, the program refuses it when it
//        is called, or that is a condition, too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/arith/interval.h"
#include "compiler/ir/prim_expr.h"
#include "runtime/data_type.h"

namespace ingot::importer::shapes {

class Conditions {
 public:
  // `limit_dim` has a program refuse a greater dim of its inputs than this; false if the symbol is no such dim.
  using LimitDim = std::function<bool(const ir::PrimVar& symbol, int64_t most)>;
  Conditions(arith::Analyzer& analyzer, LimitDim limit_dim) : analyzer_(analyzer), limit_dim_(std::move(limit_dim)) {}

  // Adds a condition unless it is known to hold; false if it never holds, or if there are too many.
  [[nodiscard]] bool Add(const ir::PrimExpr& condition);
  // Whether an int64 expression and all of its parts stay within int64; adds conditions, or bounds of dims, for that.
  [[nodiscard]] bool Fits(const ir::PrimExpr& expr);
  // Whether a result of this dtype is what the formula says; adds conditions for that.
  [[nodiscard]] bool Keeps(DataType dtype, const ir::PrimExpr& expr);

  const std::vector<ir::PrimExpr>& list() const { return list_; }
  // Whether an element of a float may be -0 where the formula says 0.
  bool loses_zero_sign() const { return loses_zero_sign_; }
  void LoseZeroSign() { loses_zero_sign_ = true; }

 private:
  std::optional<arith::Interval> Bounds(const ir::PrimExpr& expr);
  std::optional<arith::Interval> BoundsOfBinary(const ir::BinaryNode& node);
  bool Limit(const ir::PrimExpr& expr, arith::Interval& bounds, int64_t limit);

  std::optional<arith::Interval> BoundsWith(int64_t largest_dim, const ir::PrimExpr& expr);
  bool LimitDims(const ir::PrimExpr& expr, int64_t most);

  arith::Analyzer& analyzer_;
  LimitDim limit_dim_;
  std::vector<ir::PrimExpr> list_;
  bool loses_zero_sign_ = false;
  int64_t largest_dim_ = INT32_MAX;
  bool adds_ = true;  // false: bounds only
};

}  // namespace ingot::importer::shapes
