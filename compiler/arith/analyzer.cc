// The public methods of Analyzer (bindings, assumptions, proofs) and Simplify, which walks expressions of any dtype.
// Canonical forms are in canonical.cc, bounds and the search for proofs in prove.cc.
#include "compiler/arith/analyzer.h"

#include <algorithm>

#include "compiler/ir/int_math.h"
#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"

namespace ingot::arith {

Analyzer::Analyzer() = default;
Analyzer::Analyzer(const Analyzer& other) = default;
Analyzer::Analyzer(Analyzer&& other) noexcept = default;
Analyzer& Analyzer::operator=(const Analyzer& other) = default;
Analyzer& Analyzer::operator=(Analyzer&& other) noexcept = default;
Analyzer::~Analyzer() = default;
namespace {

using ir::As;
using ir::BinaryNode;
using ir::BinaryOp;
using ir::PrimExpr;

bool IsCanonical(DataType dtype) { return dtype.is_int() && dtype.bits >= 32 && dtype.is_scalar(); }

}  // namespace

// Rewrites an expression of any dtype: integers through canonical forms, conditions by proofs, the rest child by child.
class Simplifier : public ir::PrimMutator {
 public:
  explicit Simplifier(Analyzer& analyzer) : analyzer_(analyzer) {}

  PrimExpr MutatePrim(const PrimExpr& expr) override {
    // Canonical() comes back here for the inside of atoms.
    const bool arithmetic = expr->kind == ir::PrimKind::kBinary || expr->kind == ir::PrimKind::kPrimVar;
    return arithmetic && IsCanonical(expr->dtype) ? analyzer_.Build(analyzer_.Canonical(expr))
                                                  : PrimMutator::MutatePrim(expr);
  }

 protected:
  using PrimMutator::Mutate;
  PrimExpr Mutate(const ir::Ref<ir::PrimVarNode>& var) override {
    const auto value = analyzer_.values_.find(var);
    return value == analyzer_.values_.end() ? PrimExpr(var) : value->second;
  }
  PrimExpr Mutate(const ir::Ref<BinaryNode>& node) override {
    switch (node->op) {
      case BinaryOp::kEQ:
      case BinaryOp::kNE:
      case BinaryOp::kLT:
      case BinaryOp::kLE:
      case BinaryOp::kGT:
      case BinaryOp::kGE:
        if (IsCanonical(node->a->dtype)) return Compare(node);
        return PrimMutator::Mutate(node);
      case BinaryOp::kAnd:
      case BinaryOp::kOr: {
        PrimExpr a = MutatePrim(node->a);
        PrimExpr b = MutatePrim(node->b);
        if (SameExpr(a, b)) return a;
        if (a.same_as(node->a) && b.same_as(node->b)) return node;
        return ir::MakeBinary(node->op, std::move(a), std::move(b));
      }
      case BinaryOp::kAdd:
      case BinaryOp::kSub:
      case BinaryOp::kMul:
        return Vector(PrimMutator::Mutate(node));
      case BinaryOp::kDiv:
      case BinaryOp::kTruncMod:
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod:
      case BinaryOp::kMin:
      case BinaryOp::kMax:
        return PrimMutator::Mutate(node);
    }
    INGOT_UNREACHABLE("BinaryOp");
  }

 private:
  // Every comparison is "d >= 0" or "d == 0" for d a difference of its sides.
  PrimExpr Compare(const ir::Ref<BinaryNode>& node) {
    const LinearSum a = analyzer_.Canonical(node->a);
    const LinearSum b = analyzer_.Canonical(node->b);
    const auto forward = AddScaled(b, a, -1);
    const auto backward = AddScaled(a, b, -1);
    if (!forward.has_value() || !backward.has_value()) return ir::MakeBinary(node->op, ToExpr(a), ToExpr(b));
    const auto at_least = [&](const LinearSum& sum, int64_t least) {
      const auto shifted = AddScaled(sum, LinearSum::Constant(sum.dtype, least), -1);
      return shifted.has_value() && analyzer_.ProveNonNegative(*shifted);
    };
    switch (node->op) {
      case BinaryOp::kLT:
        if (at_least(*forward, 1)) return ir::BoolImm(true);
        if (at_least(*backward, 0)) return ir::BoolImm(false);
        break;
      case BinaryOp::kLE:
        if (at_least(*forward, 0)) return ir::BoolImm(true);
        if (at_least(*backward, 1)) return ir::BoolImm(false);
        break;
      case BinaryOp::kGT:
        if (at_least(*backward, 1)) return ir::BoolImm(true);
        if (at_least(*forward, 0)) return ir::BoolImm(false);
        break;
      case BinaryOp::kGE:
        if (at_least(*backward, 0)) return ir::BoolImm(true);
        if (at_least(*forward, 1)) return ir::BoolImm(false);
        break;
      case BinaryOp::kEQ:
      case BinaryOp::kNE: {
        const bool is_eq = node->op == BinaryOp::kEQ;
        if (forward->is_zero()) return ir::BoolImm(is_eq);
        if (at_least(*forward, 1) || at_least(*backward, 1)) return ir::BoolImm(!is_eq);
        const int64_t gcd = CoefficientGcd(*forward);
        if (gcd > 1 && forward->constant % gcd != 0) return ir::BoolImm(!is_eq);
        break;
      }
      default:
        INGOT_UNREACHABLE("a comparison");
    }
    return Rebuild(node, a, b, *backward);
  }

  // Sides whose terms cancel are written again from their difference; others keep their form. A common factor of the
  // coefficients is divided out.
  PrimExpr Rebuild(const ir::Ref<BinaryNode>& node, const LinearSum& a, const LinearSum& b,
                   const LinearSum& difference) {
    const bool cancels =
        difference.terms.size() < a.terms.size() + b.terms.size() || (a.constant != 0 && b.constant != 0);
    const bool is_equality = node->op == BinaryOp::kEQ || node->op == BinaryOp::kNE;
    const int64_t gcd = CoefficientGcd(difference);
    if (!cancels && (gcd <= 1 || difference.constant % gcd != 0)) {
      PrimExpr left = ToExpr(a);
      PrimExpr right = ToExpr(b);
      if (SameExpr(left, node->a) && SameExpr(right, node->b)) return node;
      return ir::MakeBinary(node->op, std::move(left), std::move(right));
    }
    LinearSum left = LinearSum::Constant(a.dtype, 0);
    LinearSum right = LinearSum::Constant(a.dtype, 0);
    const bool divide = gcd > 1 && (difference.constant % gcd == 0 || !is_equality);
    const int64_t by = divide ? gcd : 1;
    for (const LinearTerm& term : difference.terms) {
      LinearSum& side = term.coefficient > 0 ? left : right;
      const auto magnitude = ir::CheckedMul(term.coefficient / by, term.coefficient > 0 ? 1 : -1);
      if (!magnitude.has_value()) return ir::MakeBinary(node->op, ToExpr(a), ToExpr(b));
      side.terms.push_back({*magnitude, term.factors});
    }
    // left + constant OP right, for integers: the constant is rounded to the side where the comparison stays the same.
    const bool rounds_up = node->op == BinaryOp::kLE || node->op == BinaryOp::kGT;
    const auto floor = ir::CheckedFloorDiv(difference.constant, by);
    if (!floor.has_value()) return ir::MakeBinary(node->op, ToExpr(a), ToExpr(b));
    const int64_t constant = *floor + (rounds_up && difference.constant % by != 0 ? 1 : 0);
    const auto negated = ir::CheckedSub(0, constant);
    if ((constant > 0 && !left.terms.empty() && !right.terms.empty()) || left.terms.empty() || !negated.has_value()) {
      left.constant = constant;
    } else {
      right.constant = *negated;
    }
    return ir::MakeBinary(node->op, ToExpr(left), ToExpr(right));
  }

  // ramp + broadcast and ramp * broadcast are ramps.
  PrimExpr Vector(PrimExpr expr) {
    const auto* node = As<BinaryNode>(expr);
    if (node == nullptr || !expr->dtype.is_integral()) return expr;
    const auto* ramp = As<ir::RampNode>(node->a);
    const auto* broadcast = As<ir::BroadcastNode>(node->b);
    if (ramp == nullptr && node->op != BinaryOp::kSub) {
      ramp = As<ir::RampNode>(node->b);
      broadcast = As<ir::BroadcastNode>(node->a);
    }
    if (ramp == nullptr || broadcast == nullptr) return expr;
    PrimExpr base = MutatePrim(ir::MakeBinary(node->op, ramp->base, broadcast->value));
    PrimExpr stride = node->op == BinaryOp::kMul ? MutatePrim(ramp->stride * broadcast->value) : ramp->stride;
    return ir::Make<ir::RampNode>(std::move(base), std::move(stride), ramp->lanes);
  }

  Analyzer& analyzer_;
};

void Analyzer::Bind(const ir::PrimVar& var, const ir::Range& range) {
  Bound bound{Interval::Everything(), std::nullopt, bounds_.size()};
  const Interval min = Bounds(range.min);
  const Interval extent = Bounds(range.extent);
  bound.interval = Interval{min.min, (min + extent + Interval{-1, -1}).max};
  // Elements may be others when they are compared with the variable.
  const bool is_fixed = !IsOfElements(range.min) && !IsOfElements(range.extent);
  if (is_fixed && (!ir::AsConstInt(range.min) || !ir::AsConstInt(range.extent))) bound.range = range;
  bounds_[var] = bound;
  Forget();
}

void Analyzer::Bind(const ir::PrimVar& var, Interval interval) {
  bounds_[var] = Bound{interval, std::nullopt, bounds_.size()};
  Forget();
}

void Analyzer::BindLet(const ir::PrimVar& var, const PrimExpr& value) {
  if (IsOfElements(value)) lets_of_elements_.insert(var.get());
  // Sums of narrow integers wrap around where bounds would say that they grow.
  const bool is_known = value->dtype == DataType::Int(64) && !IsOfElements(value);
  Bind(var, is_known ? Bounds(value) : Interval::Everything());
}

bool Analyzer::IsOfElements(const PrimExpr& expr) const {
  return ir::ReadsMemory(expr) || ir::MentionsAny(expr, lets_of_elements_);
}

void Analyzer::BindValue(const ir::PrimVar& var, const PrimExpr& value) {
  values_[var] = Simplify(value);
  Forget();
}

namespace {

class PartFinder : public ir::PrimVisitor {
 public:
  explicit PartFinder(const PrimExpr& part) : part_(part) {}
  bool found = false;
  void VisitPrim(const PrimExpr& expr) override {
    found = found || ir::StructuralEqual(expr, part_);
    if (!found) PrimVisitor::VisitPrim(expr);
  }

 private:
  const PrimExpr& part_;
};

bool IsPartOf(const PrimExpr& part, const PrimExpr& whole) {
  PartFinder finder(part);
  finder.VisitPrim(whole);
  return finder.found;
}

}  // namespace

void Analyzer::Assume(const PrimExpr& condition) {
  const auto* node = As<BinaryNode>(condition);
  if (node == nullptr) return;
  if (node->op == BinaryOp::kAnd) {
    Assume(node->a);
    Assume(node->b);
    return;
  }
  const auto forward = Difference(node->b, node->a);
  const auto backward = Difference(node->a, node->b);
  if (!forward.has_value() || !backward.has_value()) return;
  const auto assume = [this](const LinearSum& sum, int64_t least) {
    const auto shifted = AddScaled(sum, LinearSum::Constant(sum.dtype, least), -1);
    if (shifted.has_value()) AssumeNonNegative(*shifted);
  };
  switch (node->op) {
    case BinaryOp::kLT:
      return assume(*forward, 1);
    case BinaryOp::kLE:
      return assume(*forward, 0);
    case BinaryOp::kGT:
      return assume(*backward, 1);
    case BinaryOp::kGE:
      return assume(*backward, 0);
    case BinaryOp::kEQ: {
      const LinearSum left = Canonical(node->a);
      // An equation between an atom and an expression that contains it gives the atom no value.
      const PrimExpr* atom = left.only_atom();
      if (atom != nullptr && !IsPartOf(*atom, node->b)) known_values_.push_back({*atom, Canonical(node->b)});
      Forget();
      assume(*forward, 0);
      return assume(*backward, 0);
    }
    case BinaryOp::kNE:
    case BinaryOp::kOr:
      return;  // nothing that a proof would use
    default:
      INGOT_UNREACHABLE("a condition");
  }
}

PrimExpr Analyzer::Simplify(const PrimExpr& expr) { return Simplifier(*this).MutatePrim(expr); }

Interval Analyzer::Bounds(const PrimExpr& expr) {
  if (IsCanonical(expr->dtype)) return BoundsOf(Canonical(expr));
  if (const auto constant = ir::AsConstInt(expr)) return {*constant, *constant};
  return BoundsOfAtom(expr);
}

bool Analyzer::ProveEqual(const PrimExpr& a, const PrimExpr& b) {
  if (SameExpr(a, b)) return true;
  if (!IsCanonical(a->dtype)) return SameExpr(Simplify(a), Simplify(b));
  const auto difference = Difference(a, b);
  if (!difference.has_value()) return false;
  const Interval bounds = BoundsOf(*difference);
  return bounds.min == 0 && bounds.max == 0;
}

bool Analyzer::ProveLess(const PrimExpr& a, const PrimExpr& b) {
  const auto difference = Difference(b, a);
  const auto least =
      difference.has_value() ? AddScaled(*difference, LinearSum::Constant(difference->dtype, 1), -1) : std::nullopt;
  return least.has_value() && ProveNonNegative(*least);
}

bool Analyzer::ProveLessEqual(const PrimExpr& a, const PrimExpr& b) {
  const auto difference = Difference(b, a);
  return difference.has_value() && ProveNonNegative(*difference);
}

bool Analyzer::Prove(const PrimExpr& condition) { return ir::IsConstInt(Simplify(condition), 1); }

bool Analyzer::ProveDivisible(const PrimExpr& expr, int64_t divisor) {
  if (!IsCanonical(expr->dtype) || divisor <= 0) return false;
  const auto remainder = FloorModuloBy(Canonical(expr), divisor);
  return remainder.has_value() && remainder->is_zero();
}

std::optional<LinearForm> DetectLinear(const PrimExpr& expr, const std::vector<ir::PrimVar>& vars) {
  Analyzer analyzer;
  return DetectLinear(expr, vars, analyzer);
}

std::optional<LinearForm> DetectLinear(const PrimExpr& expr, const std::vector<ir::PrimVar>& vars, Analyzer& analyzer) {
  if (!IsCanonical(expr->dtype)) return std::nullopt;
  const LinearSum sum = analyzer.Canonical(expr);
  const auto place_of = [&](const PrimExpr& factor) {
    const auto it = std::find_if(vars.begin(), vars.end(), [&](const auto& var) { return var.get() == factor.get(); });
    return static_cast<size_t>(it - vars.begin());
  };
  std::vector<LinearSum> coefficients(vars.size(), LinearSum::Constant(expr->dtype, 0));
  LinearSum constant = LinearSum::Constant(expr->dtype, sum.constant);
  for (const LinearTerm& term : sum.terms) {
    std::vector<PrimExpr> others;
    size_t place = vars.size();
    for (const PrimExpr& factor : term.factors) {
      const size_t found = place_of(factor);
      if (found == vars.size()) {
        for (const ir::PrimVar& inner : ir::FreePrimVars(factor)) {
          if (place_of(inner) != vars.size()) return std::nullopt;
        }
        others.push_back(factor);
      } else if (place != vars.size()) {
        return std::nullopt;  // a product of two of them
      } else {
        place = found;
      }
    }
    LinearSum& part = place == vars.size() ? constant : coefficients[place];
    if (others.empty()) {
      part.constant += term.coefficient;  // one term at most is the variable alone
    } else {
      part.terms.push_back({term.coefficient, std::move(others)});
    }
  }
  LinearForm form{{}, ToExpr(constant)};
  for (const LinearSum& coefficient : coefficients) form.coefficients.push_back(ToExpr(coefficient));
  return form;
}

}  // namespace ingot::arith
