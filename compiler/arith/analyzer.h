// The symbolic arithmetic: canonical linear forms, floordiv and floormod rules, interval bounds and proofs over integer
// PrimExprs. Serves type inference, index simplification, memory planning and shape lowering. Overflow of a constant
// is checked: what would overflow is left as it is and proves nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "compiler/ir/prim_expr.h"
#include "compiler/ir/visitor.h"

namespace ingot::arith {

// Inclusive; INT64_MIN and INT64_MAX stand for unbounded.
struct Interval {
  int64_t min, max;
};

class Analyzer {
 public:
  // A symbolic dimension is >= 0 unless told otherwise; a loop variable is bound to its range.
  void Bind(const ir::PrimVar& var, const ir::Range& range);
  void Bind(const ir::PrimVar& var, Interval interval);
  void BindValue(const ir::PrimVar& var, const ir::PrimExpr& value);  // var is this expression
  void Assume(const ir::PrimExpr& condition);                         // such as a predicate

  // An equal expression in canonical form (sums of products ordered by first occurrence, constants last).
  ir::PrimExpr Simplify(const ir::PrimExpr& expr);
  Interval Bounds(const ir::PrimExpr& expr);
  // Proofs: false means "not proved".
  bool ProveEqual(const ir::PrimExpr& a, const ir::PrimExpr& b);
  bool ProveLess(const ir::PrimExpr& a, const ir::PrimExpr& b);
  bool ProveLessEqual(const ir::PrimExpr& a, const ir::PrimExpr& b);
  bool Prove(const ir::PrimExpr& condition);
  bool ProveDivisible(const ir::PrimExpr& expr, int64_t divisor);

 private:
  std::unordered_map<ir::PrimVar, Interval, ir::RefHash, ir::RefSame> bounds_;
  ir::PrimVarMap values_;
  std::vector<ir::PrimExpr> assumptions_;
};

// expr = sum(coefficients[i] * vars[i]) + constant, or nothing when it is not linear in vars (the constant part may
// hold other variables).
struct LinearForm {
  std::vector<ir::PrimExpr> coefficients;
  ir::PrimExpr constant;
};
std::optional<LinearForm> DetectLinear(const ir::PrimExpr& expr, const std::vector<ir::PrimVar>& vars);

}  // namespace ingot::arith
