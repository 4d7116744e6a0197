// Interval bounds and proofs. A proof shows that a sum is never negative: by its interval, by putting the ends of
// ranges for variables (inner loops first), by what atoms such as quotients and minima are known to satisfy, and by
// assumptions. The search is small and bounded; what it does not find is "not proved".
#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/int_math.h"

namespace ingot::arith {
namespace {

using ir::As;
using ir::BinaryNode;
using ir::BinaryOp;
using ir::PrimExpr;

constexpr int kMaxDepth = 8;
constexpr int kMaxSteps = 200;
constexpr size_t kMaxRememberedBounds = 1 << 14;

Interval RangeOf(DataType dtype) {
  if (dtype.is_bool()) return {0, 1};
  if (dtype.is_int() && dtype.bits < 64) {
    const int64_t half = int64_t{1} << (dtype.bits - 1);
    return {-half, half - 1};
  }
  if (dtype.is_uint() && dtype.bits < 64) return {0, (int64_t{1} << dtype.bits) - 1};
  return Interval::Everything();
}

// sum = slope*var + rest, var not inside either; nothing when var occurs inside an atom or in a power.
struct SplitByVar {
  LinearSum slope, rest;
};
std::optional<SplitByVar> SplitAt(const LinearSum& sum, const ir::PrimVar& var) {
  SplitByVar split{LinearSum::Constant(sum.dtype, 0), LinearSum::Constant(sum.dtype, sum.constant)};
  for (const LinearTerm& term : sum.terms) {
    std::vector<PrimExpr> others;
    for (const PrimExpr& factor : term.factors) {
      if (factor.get() != var.get()) others.push_back(factor);
    }
    const size_t power = term.factors.size() - others.size();
    if (power > 1) return std::nullopt;
    if (power == 0) {
      split.rest.terms.push_back(term);
    } else if (others.empty()) {
      split.slope.constant += term.coefficient;  // one term at most has the factors {var}
    } else {
      split.slope.terms.push_back({term.coefficient, std::move(others)});
    }
  }
  return split;
}

}  // namespace

Interval Analyzer::BoundsOfAtom(const PrimExpr& atom) {
  if (const auto it = atom_bounds_.find(atom); it != atom_bounds_.end()) return it->second;
  const Interval bounds = ComputeBoundsOfAtom(atom);
  if (atom_bounds_.size() >= kMaxRememberedBounds) atom_bounds_.clear();
  atom_bounds_.emplace(atom, bounds);
  return bounds;
}

void Analyzer::Forget() {
  canonical_.clear();
  atom_bounds_.clear();
}

Interval Analyzer::ComputeBoundsOfAtom(const PrimExpr& atom) {
  const Interval range = RangeOf(atom->dtype);
  if (const auto var = ir::AsRef<ir::PrimVarNode>(atom)) {
    const auto it = bounds_.find(var);
    return Intersect(range, it == bounds_.end() ? Interval{0, Interval::kUnboundedAbove} : it->second.interval);
  }
  if (const auto* node = As<BinaryNode>(atom); node != nullptr && node->a->dtype == atom->dtype) {
    const Interval a = Bounds(node->a);
    const Interval b = Bounds(node->b);
    switch (node->op) {
      case BinaryOp::kMin:
        return MinOf(a, b);
      case BinaryOp::kMax:
        return MaxOf(a, b);
      case BinaryOp::kFloorDiv:
      case BinaryOp::kDiv:
        if (node->op == BinaryOp::kDiv && a.min < 0) break;
        if (b.is_single() && b.min > 0) return Intersect(range, FloorDivide(a, b.min));
        // Division by a positive number does not increase a value that is not negative.
        if (b.min >= 0 && a.min >= 0) return {0, a.max};
        break;
      case BinaryOp::kFloorMod:
      case BinaryOp::kTruncMod:
        if (node->op == BinaryOp::kTruncMod && a.min < 0) break;
        if (b.is_single() && b.min > 0) return FloorModulo(a, b.min);
        if (b.min >= 0) return {0, b.max == Interval::kUnboundedAbove ? b.max : std::max<int64_t>(b.max - 1, 0)};
        break;
      case BinaryOp::kAdd:
        return Intersect(range, a + b);
      case BinaryOp::kSub:
        return Intersect(range, a + -b);
      case BinaryOp::kMul:
        return Intersect(range, a * b);
      case BinaryOp::kEQ:
      case BinaryOp::kNE:
      case BinaryOp::kLT:
      case BinaryOp::kLE:
      case BinaryOp::kGT:
      case BinaryOp::kGE:
      case BinaryOp::kAnd:
      case BinaryOp::kOr:
        break;
    }
    return range;
  }
  if (const auto* select = As<ir::SelectNode>(atom)) {
    return Union(Bounds(select->true_value), Bounds(select->false_value));
  }
  if (const auto* call = As<ir::PrimCallNode>(atom); call != nullptr && call->op == ir::Intrinsic::kIfThenElse) {
    return Union(Bounds(call->args[1]), Bounds(call->args[2]));
  }
  if (const auto* cast = As<ir::CastNode>(atom); cast != nullptr && !cast->value->dtype.is_floating()) {
    const Interval value = cast->value->dtype.is_int() ? Bounds(cast->value) : RangeOf(cast->value->dtype);
    return range.contains(value) ? value : range;
  }
  return range;
}

Interval Analyzer::BoundsOf(const LinearSum& sum) {
  Interval total{sum.constant, sum.constant};
  for (const LinearTerm& term : sum.terms) {
    Interval product{term.coefficient, term.coefficient};
    for (const PrimExpr& factor : term.factors) product = product * BoundsOfAtom(factor);
    total = total + product;
  }
  return total;
}

bool Analyzer::ProveNonNegative(const LinearSum& sum) {
  // Canonical forms of minima ask for proofs in turn. Inside of a proof they get none, and keep the minimum, so that
  // this ends.
  if (proving_) return false;
  proving_ = true;
  int budget = kMaxSteps;
  const bool proved = ProveNonNegative(sum, kMaxDepth, budget);
  proving_ = false;
  return proved;
}

bool Analyzer::ProveNonNegative(const LinearSum& sum, int depth, int& budget) {
  if (BoundsOf(sum).min >= 0) return true;
  if (depth == 0 || sum.is_constant() || --budget <= 0) return false;
  if (ProveByRange(sum, depth, budget) || ProveByAtom(sum, depth, budget)) return true;
  for (const LinearSum& fact : non_negative_) {
    if (fact.dtype != sum.dtype) continue;
    const auto left = AddScaled(sum, fact, -1);
    // A fact helps only where it cancels a term.
    if (left.has_value() && left->terms.size() < sum.terms.size() + fact.terms.size() &&
        ProveNonNegative(*left, std::min(depth - 1, 2), budget)) {
      return true;
    }
  }
  return false;
}

// Puts the end of a symbolic range for the variable that was bound last.
bool Analyzer::ProveByRange(const LinearSum& sum, int depth, int& budget) {
  const Bound* bound = nullptr;
  ir::PrimVar var;
  for (const LinearTerm& term : sum.terms) {
    for (const PrimExpr& factor : term.factors) {
      const auto candidate = ir::AsRef<ir::PrimVarNode>(factor);
      const auto it = candidate ? bounds_.find(candidate) : bounds_.end();
      if (it == bounds_.end() || !it->second.range.has_value()) continue;
      if (bound == nullptr || it->second.order > bound->order) {
        bound = &it->second;
        var = candidate;
      }
    }
  }
  if (bound == nullptr || bound->range->min->dtype != sum.dtype) return false;
  const auto split = SplitAt(sum, var);
  if (!split.has_value()) return false;
  const Interval slope = BoundsOf(split->slope);
  LinearSum end = Canonical(bound->range->min);
  if (slope.max <= 0) {
    const auto last = AddScaled(end, Canonical(bound->range->extent), 1);
    const auto inclusive = last.has_value() ? AddScaled(*last, LinearSum::Constant(sum.dtype, 1), -1) : std::nullopt;
    if (!inclusive.has_value()) return false;
    end = *inclusive;
  } else if (slope.min < 0) {
    return false;
  }
  const auto at_end = Multiply(split->slope, end);
  const auto total = at_end.has_value() ? AddScaled(split->rest, *at_end, 1) : std::nullopt;
  return total.has_value() && ProveNonNegative(*total, depth - 1, budget);
}

// c*(x // c) lies in [x - c + 1, x]; a whole number t is at least x // c where t*c + c - 1 is at least x; x % n is
// below n; a minimum is one of its operands and at most each of them.
bool Analyzer::ProveByAtom(const LinearSum& sum, int depth, int& budget) {
  for (const LinearTerm& term : sum.terms) {
    const auto* node = term.only_factor() ? As<BinaryNode>(*term.only_factor()) : nullptr;
    if (node == nullptr || node->a->dtype != sum.dtype) continue;
    const auto without = AddTerm(sum, term, -1);
    if (!without.has_value()) continue;
    const auto replaced_by = [&](const PrimExpr& operand) {
      const auto total = AddScaled(*without, Canonical(operand), term.coefficient);
      return total.has_value() && ProveNonNegative(*total, depth - 1, budget);
    };
    if (node->op == BinaryOp::kMin || node->op == BinaryOp::kMax) {
      const bool either = (node->op == BinaryOp::kMin) == (term.coefficient < 0);
      const bool first = replaced_by(node->a);
      if (either ? first || replaced_by(node->b) : first && replaced_by(node->b)) return true;
      continue;
    }
    // By a symbol n > 0: x % n <= n - 1, and t - x // n >= 0 where x <= t*n + n - 1.
    if (!ir::AsConstInt(node->b) && term.coefficient < 0 && Bounds(node->b).min >= 0) {
      const LinearSum n = Canonical(node->b);
      const auto last = AddScaled(n, LinearSum::Constant(sum.dtype, 1), -1);
      std::optional<LinearSum> total;
      if (last.has_value() && node->op == BinaryOp::kFloorMod) total = AddScaled(*without, *last, term.coefficient);
      if (last.has_value() && node->op == BinaryOp::kFloorDiv && term.coefficient == -1) {
        const auto whole = Multiply(*without, n);
        total = whole.has_value() ? AddScaled(*whole, *last, 1) : std::nullopt;
        if (total.has_value()) total = AddScaled(*total, Canonical(node->a), -1);
      }
      if (total.has_value() && ProveNonNegative(*total, depth - 1, budget)) return true;
    }
    const std::optional<int64_t> divisor = node->op == BinaryOp::kFloorDiv ? ir::AsConstInt(node->b) : std::nullopt;
    if (!divisor || *divisor <= 0) continue;
    const auto proved_with = [&](const LinearSum& dividend, int64_t by) {
      auto total = Scale(*without, by);
      if (total.has_value()) total = AddScaled(*total, dividend, term.coefficient);
      if (total.has_value() && term.coefficient >= -1) {  // t - x // c >= 0 exactly where x <= t*c + c - 1
        total = AddScaled(*total, LinearSum::Constant(sum.dtype, by - 1), -term.coefficient);
      }
      return total.has_value() && ProveNonNegative(*total, depth - 1, budget);
    };
    if (proved_with(Canonical(node->a), *divisor)) return true;
    // x // (a*m) is (x // a) // m, too: so is it where x // a is another term.
    for (const LinearTerm& other : without->terms) {
      const auto* part = other.only_factor() ? As<BinaryNode>(*other.only_factor()) : nullptr;
      if (part == nullptr || part->op != BinaryOp::kFloorDiv || !SameExpr(part->a, node->a)) continue;
      const std::optional<int64_t> by = ir::AsConstInt(part->b);
      if (!by || *by <= 0 || *by == *divisor || *divisor % *by != 0) continue;
      if (proved_with(LinearSum::Atom(*other.only_factor()), *divisor / *by)) return true;
    }
  }
  return false;
}

// Keeps the fact; where it bounds one variable by a constant, the variable's interval says so too.
void Analyzer::AssumeNonNegative(const LinearSum& sum) {
  non_negative_.push_back(sum);
  Forget();
  if (sum.terms.size() != 1 || sum.terms[0].only_factor() == nullptr) return;
  const auto var = ir::AsRef<ir::PrimVarNode>(*sum.terms[0].only_factor());
  const auto negated = ir::CheckedSub(0, sum.constant);
  if (!var || !negated.has_value()) return;
  Bound& bound =
      bounds_.try_emplace(var, Bound{{0, Interval::kUnboundedAbove}, std::nullopt, bounds_.size()}).first->second;
  const int64_t k = sum.terms[0].coefficient;
  if (k > 0) {  // k*v + c >= 0: v >= ceil(-c / k)
    const auto floor = ir::CheckedFloorDiv(sum.constant, k);
    if (floor.has_value() && *floor != Interval::kUnboundedBelow)
      bound.interval.min = std::max(bound.interval.min, -*floor);
  } else if (k != Interval::kUnboundedBelow) {  // v <= floor(c / -k)
    const auto floor = ir::CheckedFloorDiv(sum.constant, -k);
    if (floor.has_value()) bound.interval.max = std::min(bound.interval.max, *floor);
  }
}

std::optional<LinearSum> Analyzer::Difference(const PrimExpr& a, const PrimExpr& b) {
  PrimExpr x = a;
  PrimExpr y = b;
  if (x->dtype != y->dtype && x->kind == ir::PrimKind::kIntImm) x = ir::IntImm(y->dtype, *ir::AsConstInt(x));
  if (x->dtype != y->dtype && y->kind == ir::PrimKind::kIntImm) y = ir::IntImm(x->dtype, *ir::AsConstInt(y));
  if (x->dtype != y->dtype || !x->dtype.is_int() || !x->dtype.is_scalar()) return std::nullopt;
  const auto difference = AddScaled(Canonical(x), Canonical(y), -1);
  return difference.has_value() ? Recombine(*difference) : std::nullopt;
}

}  // namespace ingot::arith
