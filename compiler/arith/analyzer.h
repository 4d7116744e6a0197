// The symbolic arithmetic: canonical linear forms, floordiv and floormod rules, interval bounds and proofs over integer
// PrimExprs. Type inference, index simplification, memory planning and shape lowering use it. Overflow of a constant
// is checked: an operation that would overflow is left as it is and proves nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "compiler/arith/interval.h"
#include "compiler/arith/linear_sum.h"
#include "compiler/ir/prim_expr.h"
#include "compiler/ir/visitor.h"

namespace ingot::arith {

class Analyzer {
 public:
  Analyzer();
  Analyzer(const Analyzer& other);
  Analyzer(Analyzer&& other) noexcept;
  Analyzer& operator=(const Analyzer& other);
  Analyzer& operator=(Analyzer&& other) noexcept;
  ~Analyzer();

  // A symbolic dimension is >= 0 unless told otherwise; a loop variable is bound to its range, whose ends may be
  // symbolic.
  void Bind(const ir::PrimVar& var, const ir::Range& range);
  void Bind(const ir::PrimVar& var, Interval interval);
  // A let's variable is no dimension: it has the bounds that are known of its value, which may be negative. Nothing is
  // known of what is computed from elements, whose arithmetic wraps around.
  void BindLet(const ir::PrimVar& var, const ir::PrimExpr& value);
  // Whether the expression reads memory or mentions a let that does.
  bool IsOfElements(const ir::PrimExpr& expr) const;
  void BindValue(const ir::PrimVar& var, const ir::PrimExpr& value);  // var is this expression
  void Assume(const ir::PrimExpr& condition);                         // holds from here on

  // An equal expression in canonical form (sums of products ordered by first occurrence, constants last). Divisors
  // are taken to be other than 0.
  ir::PrimExpr Simplify(const ir::PrimExpr& expr);
  // An interval that holds every value of a scalar integer expression; unbounded where nothing is known.
  Interval Bounds(const ir::PrimExpr& expr);
  // Proofs: false means "not proved".
  bool ProveEqual(const ir::PrimExpr& a, const ir::PrimExpr& b);
  bool ProveLess(const ir::PrimExpr& a, const ir::PrimExpr& b);
  bool ProveLessEqual(const ir::PrimExpr& a, const ir::PrimExpr& b);
  bool Prove(const ir::PrimExpr& condition);
  bool ProveDivisible(const ir::PrimExpr& expr, int64_t divisor);

  // The canonical form of a scalar int32 or int64 expression.
  LinearSum Canonical(const ir::PrimExpr& expr);

 private:
  friend class Simplifier;
  struct Bound {
    Interval interval;
    std::optional<ir::Range> range;  // where an end is symbolic
    size_t order = 0;                // of binding: inner loops later
  };
  struct KnownValue {
    ir::PrimExpr atom;
    LinearSum value;
  };

  // canonical.cc
  LinearSum ComputeCanonical(const ir::PrimExpr& expr);
  ir::PrimExpr Build(const LinearSum& sum);
  void Remember(const ir::PrimExpr& expr, const LinearSum& sum);
  std::optional<LinearSum> CanonicalBinary(const ir::BinaryNode& node);
  LinearSum CanonicalAtom(const ir::PrimExpr& atom);
  LinearSum CanonicalMinMax(const ir::BinaryNode& node);
  std::optional<LinearSum> FloorDivideBy(const LinearSum& a, int64_t divisor);
  std::optional<LinearSum> FloorModuloBy(const LinearSum& a, int64_t divisor);
  std::optional<LinearSum> DivideBySymbol(const LinearSum& a, const LinearSum& divisor, bool modulo);
  std::optional<LinearSum> Recombine(LinearSum sum);
  std::optional<LinearSum> RecombineOnce(const LinearSum& sum);
  // prove.cc
  Interval BoundsOf(const LinearSum& sum);
  Interval BoundsOfAtom(const ir::PrimExpr& atom);
  Interval ComputeBoundsOfAtom(const ir::PrimExpr& atom);
  void Forget();
  bool ProveNonNegative(const LinearSum& sum);
  bool ProveNonNegative(const LinearSum& sum, int depth, int& budget);
  bool ProveByRange(const LinearSum& sum, int depth, int& budget);
  bool ProveByAtom(const LinearSum& sum, int depth, int& budget);
  void AssumeNonNegative(const LinearSum& sum);
  std::optional<LinearSum> Difference(const ir::PrimExpr& a, const ir::PrimExpr& b);

  std::unordered_map<ir::PrimVar, Bound, ir::RefHash, ir::RefSame> bounds_;
  ir::PrimVarMap values_;
  std::unordered_set<const ir::PrimVarNode*> lets_of_elements_;
  std::vector<LinearSum> non_negative_;  // assumptions
  bool proving_ = false;
  std::vector<KnownValue> known_values_;  // assumed equations of an atom
  // Results by node under the present bounds and assumptions; without them nested quotients would take exponentially
  // many steps.
  std::unordered_map<ir::PrimExpr, LinearSum, ir::RefHash, ir::RefSame> canonical_;
  std::unordered_map<ir::PrimExpr, Interval, ir::RefHash, ir::RefSame> atom_bounds_;
};

// expr = sum(coefficients[i] * vars[i]) + constant, or nothing when it is not linear in vars (coefficients and the
// constant part may hold other variables).
struct LinearForm {
  std::vector<ir::PrimExpr> coefficients;
  ir::PrimExpr constant;
};
std::optional<LinearForm> DetectLinear(const ir::PrimExpr& expr, const std::vector<ir::PrimVar>& vars);
// With what an analyzer knows of the variables; else each of them counts as a dimension.
std::optional<LinearForm> DetectLinear(const ir::PrimExpr& expr, const std::vector<ir::PrimVar>& vars,
                                       Analyzer& analyzer);

}  // namespace ingot::arith
