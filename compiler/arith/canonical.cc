// Canonical forms. Quotients and remainders by a constant follow these laws (c > 0, d divides c):
//   (c*q + r) // c          = q + r // c                       (c*q + r) % c = r % c
//   r // c = k, r % c = r - k*c                                where r lies in [k*c, (k+1)*c)
//   (d*x + y) // c          = x // (c/d)                       where 0 <= y < d
//   (d*x + y) % c           = d*(x % (c/d)) + y                where 0 <= y < d
//   (x // b + k) // c       = (x + k*b) // (b*c)
//   (x % m) // c            = (x // c) % (m/c)                 where c divides m
//   k*(x % m) + r  mod c    = k*x + r mod c                    where c divides k*m
// and these sums are joined again (c a constant; in the first law also an expression over symbols, where y is x):
//   k*c*(x // c) + k*(y % c)           = k*x                where x - y is a multiple of c
//   k*(y % a) + k*a*((x // a + r) % b) = k*((x + a*r) % (a*b))
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/int_math.h"

namespace ingot::arith {
namespace {

using ir::As;
using ir::BinaryNode;
using ir::BinaryOp;
using ir::PrimExpr;

constexpr size_t kMaxRememberedForms = 1 << 14;
constexpr size_t kMaxChain = 1000;  // operations of a sum that are taken at once

// x // c or x % c with a positive constant c.
struct ByConstant {
  PrimExpr dividend;
  int64_t divisor;
};
std::optional<ByConstant> MatchByConstant(const PrimExpr& expr, BinaryOp op) {
  const auto* node = As<BinaryNode>(expr);
  if (node == nullptr || node->op != op) return std::nullopt;
  const auto divisor = ir::AsConstInt(node->b);
  if (!divisor || *divisor <= 0) return std::nullopt;
  return ByConstant{node->a, *divisor};
}

// A sum that is one quotient by a constant.
std::optional<ByConstant> QuotientOf(const LinearSum& sum) {
  if (sum.constant != 0 || sum.terms.size() != 1) return std::nullopt;
  const LinearTerm& term = sum.terms.front();
  if (term.coefficient != 1 || !term.only_factor()) return std::nullopt;
  return MatchByConstant(*term.only_factor(), BinaryOp::kFloorDiv);
}

std::optional<LinearSum> Add(const std::optional<LinearSum>& a, const std::optional<LinearSum>& b, int64_t scale = 1) {
  return a.has_value() && b.has_value() ? AddScaled(*a, *b, scale) : std::nullopt;
}

// Divisors of c, largest first, that some coefficient shares: candidates for the laws with d.
std::vector<int64_t> SharedDivisors(const LinearSum& sum, int64_t c) {
  std::vector<int64_t> result;
  for (const LinearTerm& term : sum.terms) {
    const int64_t gcd = std::gcd(term.coefficient, c);
    if (gcd > 1 && gcd < c) result.push_back(gcd);
  }
  std::sort(result.begin(), result.end(), std::greater<>());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

// sum = d*multiple + rest, with the constant's remainder in the rest.
struct Split {
  LinearSum multiple, rest;
};
Split SplitBy(const LinearSum& sum, int64_t d) {
  Split split{LinearSum::Constant(sum.dtype, *ir::CheckedFloorDiv(sum.constant, d)),
              LinearSum::Constant(sum.dtype, *ir::CheckedFloorMod(sum.constant, d))};
  for (const LinearTerm& term : sum.terms) {
    if (term.coefficient % d == 0) {
      split.multiple.terms.push_back({term.coefficient / d, term.factors});
    } else {
      split.rest.terms.push_back(term);
    }
  }
  return split;
}

// The block k of length c that holds the whole interval, if one does.
std::optional<int64_t> BlockOf(const Interval& interval, int64_t c) {
  if (!interval.is_bounded()) return std::nullopt;
  const auto first = ir::CheckedFloorDiv(interval.min, c);
  return first == ir::CheckedFloorDiv(interval.max, c) ? first : std::nullopt;
}

// Quotients and remainders anywhere in the sum.
int CountDivisions(const LinearSum& sum) {
  struct Counter : ir::PrimVisitor {
    int count = 0;
    using PrimVisitor::Visit;
    void Visit(const BinaryNode& node) override {
      count += node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod ? 1 : 0;
      PrimVisitor::Visit(node);
    }
  } counter;
  for (const LinearTerm& term : sum.terms) {
    for (const PrimExpr& factor : term.factors) counter.VisitPrim(factor);
  }
  return counter.count;
}

}  // namespace

LinearSum Analyzer::Canonical(const PrimExpr& expr) {
  INGOT_CHECK(expr->dtype.is_int() && expr->dtype.is_scalar(), "canonical forms are of scalar integers");
  if (const auto constant = ir::AsConstInt(expr)) return LinearSum::Constant(expr->dtype, *constant);
  if (const auto it = canonical_.find(expr); it != canonical_.end()) return it->second;
  LinearSum sum = ComputeCanonical(expr);
  Remember(expr, sum);
  return sum;
}

void Analyzer::Remember(const PrimExpr& expr, const LinearSum& sum) {
  if (canonical_.size() >= kMaxRememberedForms) canonical_.clear();
  canonical_.insert_or_assign(expr, sum);
}

PrimExpr Analyzer::Build(const LinearSum& sum) {
  PrimExpr expr = ToExpr(sum);
  Remember(expr, sum);
  return expr;
}

LinearSum Analyzer::ComputeCanonical(const PrimExpr& expr) {
  if (const auto var = ir::AsRef<ir::PrimVarNode>(expr)) {
    const auto value = values_.find(var);
    return value == values_.end() ? CanonicalAtom(var) : Canonical(value->second);
  }
  if (const auto* node = As<BinaryNode>(expr); node != nullptr && node->a->dtype == expr->dtype) {
    if (const auto sum = CanonicalBinary(*node)) return *sum;
    // Something would overflow: the operands are simplified, the operation stays as it is.
    return LinearSum::Atom(ir::MakeBinary(node->op, Build(Canonical(node->a)), Build(Canonical(node->b))));
  }
  const PrimExpr simple = Simplify(expr);
  if (const auto constant = ir::AsConstInt(simple)) return LinearSum::Constant(expr->dtype, *constant);
  // Where a condition was decided, the chosen value may be a sum again.
  if (simple->kind != expr->kind) return Canonical(simple);
  return CanonicalAtom(simple);
}

LinearSum Analyzer::CanonicalAtom(const PrimExpr& atom) {
  for (const KnownValue& known : known_values_) {
    if (SameExpr(known.atom, atom)) return known.value;
  }
  const Interval bounds = BoundsOfAtom(atom);
  if (bounds.is_single()) return LinearSum::Constant(atom->dtype, bounds.min);
  LinearSum sum = LinearSum::Atom(atom);
  Remember(atom, sum);
  return sum;
}

std::optional<LinearSum> Analyzer::CanonicalBinary(const BinaryNode& node) {
  switch (node.op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      // The sums on the left of a long one are not remembered: all together they would be quadratic in its length.
      std::vector<const BinaryNode*> chain = {&node};
      const PrimExpr* left = &node.a;
      for (; chain.size() < kMaxChain && !canonical_.contains(*left); left = &chain.back()->a) {
        const auto* next = As<BinaryNode>(*left);
        if (next == nullptr || (next->op != BinaryOp::kAdd && next->op != BinaryOp::kSub)) break;
        if (next->a->dtype != node.dtype) break;
        chain.push_back(next);
      }
      std::optional<LinearSum> sum = Canonical(*left);
      for (size_t i = chain.size(); i-- > 0;) {
        sum = AddScaled(*std::move(sum), Canonical(chain[i]->b), chain[i]->op == BinaryOp::kAdd ? 1 : -1);
        if (sum.has_value()) sum = Recombine(*std::move(sum));
        if (!sum.has_value()) break;
        if (i == 1) Remember(node.a, *sum);
      }
      if (sum.has_value() || chain.size() == 1) return sum;
      // Something on the left would overflow, and stays as it is.
      sum = AddScaled(Canonical(node.a), Canonical(node.b), node.op == BinaryOp::kAdd ? 1 : -1);
      return sum.has_value() ? Recombine(*std::move(sum)) : std::nullopt;
    }
    case BinaryOp::kMul: {
      auto product = Multiply(Canonical(node.a), Canonical(node.b));
      return product.has_value() ? Recombine(*std::move(product)) : std::nullopt;
    }
    case BinaryOp::kFloorDiv:
    case BinaryOp::kFloorMod:
    case BinaryOp::kDiv:
    case BinaryOp::kTruncMod: {
      const bool modulo = node.op == BinaryOp::kFloorMod || node.op == BinaryOp::kTruncMod;
      const LinearSum a = Canonical(node.a);
      const LinearSum b = Canonical(node.b);
      const bool truncates = node.op == BinaryOp::kDiv || node.op == BinaryOp::kTruncMod;
      // Rounding towards zero is rounding down where nothing is negative.
      const bool is_floor = !truncates || (BoundsOf(a).min >= 0 && BoundsOf(b).min >= 0);
      if (is_floor && b.is_constant() && b.constant > 0) {
        return modulo ? FloorModuloBy(a, b.constant) : FloorDivideBy(a, b.constant);
      }
      if (is_floor && !b.is_constant()) {
        if (auto exact = DivideBySymbol(a, b, modulo)) return exact;
      }
      return CanonicalAtom(ir::MakeBinary(node.op, Build(a), Build(b)));
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return CanonicalMinMax(node);
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
  INGOT_UNREACHABLE("an arithmetic operation");
}

LinearSum Analyzer::CanonicalMinMax(const BinaryNode& node) {
  const LinearSum a = Canonical(node.a);
  const LinearSum b = Canonical(node.b);
  const bool is_min = node.op == BinaryOp::kMin;
  // Nothing is beyond the end of its dtype.
  if (node.dtype == DataType::Int(64)) {
    const int64_t end = is_min ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
    if (a.terms.empty() && a.constant == end) return b;
    if (b.terms.empty() && b.constant == end) return a;
  }
  if (const auto difference = AddScaled(b, a, -1)) {
    if (ProveNonNegative(*difference)) return is_min ? a : b;
    const auto opposite = Scale(*difference, -1);
    if (opposite.has_value() && ProveNonNegative(*opposite)) return is_min ? b : a;
  }
  return CanonicalAtom(ir::MakeBinary(node.op, Build(a), Build(b)));
}

std::optional<LinearSum> Analyzer::FloorDivideBy(const LinearSum& a, int64_t divisor) {
  if (divisor == 1) return a;
  // The parts that divide exactly leave the quotient.
  LinearSum quotient = LinearSum::Constant(a.dtype, *ir::CheckedFloorDiv(a.constant, divisor));
  LinearSum rest = LinearSum::Constant(a.dtype, *ir::CheckedFloorMod(a.constant, divisor));
  for (const LinearTerm& term : a.terms) {
    if (term.coefficient / divisor != 0) quotient.terms.push_back({term.coefficient / divisor, term.factors});
    if (term.coefficient % divisor != 0) rest.terms.push_back({term.coefficient % divisor, term.factors});
  }
  if (const auto block = BlockOf(BoundsOf(rest), divisor)) {
    return AddScaled(std::move(quotient), LinearSum::Constant(a.dtype, *block), 1);
  }
  for (const int64_t d : SharedDivisors(rest, divisor)) {
    const Split split = SplitBy(rest, d);
    if (const auto block = BlockOf(BoundsOf(split.rest), d)) {
      const auto multiple = AddScaled(split.multiple, LinearSum::Constant(a.dtype, *block), 1);
      return Add(quotient, multiple.has_value() ? FloorDivideBy(*multiple, divisor / d) : std::nullopt);
    }
  }
  if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1 && rest.terms[0].only_factor() != nullptr) {
    const PrimExpr& factor = *rest.terms[0].only_factor();
    if (const auto inner = MatchByConstant(factor, BinaryOp::kFloorDiv)) {
      const auto product = ir::CheckedMul(inner->divisor, divisor);
      const auto shift = ir::CheckedMul(inner->divisor, rest.constant);
      if (product.has_value() && shift.has_value()) {
        const auto dividend = Add(Canonical(inner->dividend), LinearSum::Constant(a.dtype, *shift));
        if (dividend.has_value()) return Add(quotient, FloorDivideBy(*dividend, *product));
      }
    }
    const auto inner = MatchByConstant(factor, BinaryOp::kFloorMod);
    if (inner.has_value() && rest.constant == 0 && inner->divisor % divisor == 0) {
      const auto inner_quotient = FloorDivideBy(Canonical(inner->dividend), divisor);
      if (inner_quotient.has_value()) {
        return Add(quotient, FloorModuloBy(*inner_quotient, inner->divisor / divisor));
      }
    }
  }
  return Add(quotient, CanonicalAtom(ir::FloorDiv(Build(rest), ir::IntImm(a.dtype, divisor))));
}

std::optional<LinearSum> Analyzer::FloorModuloBy(const LinearSum& a, int64_t divisor) {
  LinearSum rest = LinearSum::Constant(a.dtype, *ir::CheckedFloorMod(a.constant, divisor));
  for (const LinearTerm& term : a.terms) {
    const int64_t coefficient = term.coefficient % divisor;
    if (coefficient != 0) rest.terms.push_back({coefficient, term.factors});
  }
  if (const auto block = BlockOf(BoundsOf(rest), divisor)) {
    const auto first = ir::CheckedMul(*block, divisor);
    return first.has_value() ? AddScaled(rest, LinearSum::Constant(a.dtype, *first), -1) : std::nullopt;
  }
  for (const LinearTerm& term : rest.terms) {
    const auto inner =
        term.only_factor() == nullptr ? std::nullopt : MatchByConstant(*term.only_factor(), BinaryOp::kFloorMod);
    const auto period = inner.has_value() ? ir::CheckedMul(term.coefficient, inner->divisor) : std::nullopt;
    if (!period.has_value() || *period % divisor != 0) continue;
    const auto without = AddTerm(rest, term, -1);
    const auto replaced =
        without.has_value() ? AddScaled(*without, Canonical(inner->dividend), term.coefficient) : std::nullopt;
    if (replaced.has_value()) return FloorModuloBy(*replaced, divisor);
  }
  for (const int64_t d : SharedDivisors(rest, divisor)) {
    Split split = SplitBy(rest, d);
    const auto block = BlockOf(BoundsOf(split.rest), d);
    if (!block.has_value()) continue;
    const auto first = ir::CheckedMul(*block, d);
    if (!first.has_value()) continue;
    const auto multiple = Add(split.multiple, LinearSum::Constant(a.dtype, *block));
    const auto small = Add(split.rest, LinearSum::Constant(a.dtype, *first), -1);
    const auto outer = multiple.has_value() ? FloorModuloBy(*multiple, divisor / d) : std::nullopt;
    return Add(outer.has_value() ? Scale(*outer, d) : std::nullopt, small);
  }
  return CanonicalAtom(ir::FloorMod(Build(rest), ir::IntImm(a.dtype, divisor)));
}

// Division by a product of symbols with a positive coefficient: the terms that it divides make the quotient, and the
// others must be proved to lie in [0, divisor).
std::optional<LinearSum> Analyzer::DivideBySymbol(const LinearSum& a, const LinearSum& divisor, bool modulo) {
  if (divisor.terms.size() != 1 || divisor.constant != 0 || divisor.terms[0].coefficient <= 0) return std::nullopt;
  const LinearTerm& by = divisor.terms[0];
  LinearSum quotient = LinearSum::Constant(a.dtype, 0);
  LinearSum rest = LinearSum::Constant(a.dtype, a.constant);
  for (const LinearTerm& term : a.terms) {
    std::vector<PrimExpr> left = term.factors;
    bool divides = term.coefficient % by.coefficient == 0;
    for (const PrimExpr& factor : by.factors) {
      const auto it =
          std::find_if(left.begin(), left.end(), [&](const PrimExpr& other) { return SameExpr(other, factor); });
      if (it == left.end()) {
        divides = false;
        break;
      }
      left.erase(it);
    }
    if (!divides) {
      rest.terms.push_back(term);
      continue;
    }
    const int64_t coefficient = term.coefficient / by.coefficient;
    const auto next = left.empty() ? Add(quotient, LinearSum::Constant(a.dtype, coefficient))
                                   : AddTerm(quotient, {coefficient, left}, 1);
    if (!next.has_value()) return std::nullopt;
    quotient = *next;
  }
  if (!rest.is_zero()) {
    const auto room = Add(divisor, Add(rest, LinearSum::Constant(a.dtype, 1)), -1);
    if (!room.has_value() || !ProveNonNegative(rest) || !ProveNonNegative(*room)) return std::nullopt;
  }
  return modulo ? rest : quotient;
}

std::optional<LinearSum> Analyzer::Recombine(LinearSum sum) {
  while (auto next = RecombineOnce(sum)) sum = *std::move(next);
  return sum;
}

std::optional<LinearSum> Analyzer::RecombineOnce(const LinearSum& sum) {
  // Congruent by construction: the difference is a multiple of m term by term.
  const auto is_congruent = [](const LinearSum& x, const LinearSum& y, int64_t m) {
    const auto difference = AddScaled(x, y, -1);
    return difference.has_value() && difference->constant % m == 0 &&
           std::all_of(difference->terms.begin(), difference->terms.end(),
                       [m](const LinearTerm& term) { return term.coefficient % m == 0; });
  };
  // The sum with scale * by in place of the terms a and b; nothing unless fewer divisions are left, so that this ends.
  const auto replace = [&](const LinearTerm& a, const LinearTerm& b, const std::optional<LinearSum>& by,
                           int64_t scale) -> std::optional<LinearSum> {
    if (!by.has_value()) return std::nullopt;
    const auto without = AddTerm(sum, a, -1);
    auto next = Add(without.has_value() ? AddTerm(*without, b, -1) : std::nullopt, by, scale);
    if (!next.has_value() || CountDivisions(*next) >= CountDivisions(sum)) return std::nullopt;
    return next;
  };
  for (const LinearTerm& term : sum.terms) {
    const auto mod = term.only_factor() ? MatchByConstant(*term.only_factor(), BinaryOp::kFloorMod) : std::nullopt;
    if (!mod.has_value() || sum.terms.size() < 2) continue;
    const LinearSum dividend = Canonical(mod->dividend);
    const auto scaled = ir::CheckedMul(term.coefficient, mod->divisor);
    if (!scaled.has_value()) continue;
    for (const LinearTerm& other : sum.terms) {
      if (other.coefficient != scaled || !other.only_factor()) continue;
      if (const auto div = MatchByConstant(*other.only_factor(), BinaryOp::kFloorDiv)) {
        const LinearSum whole = Canonical(div->dividend);
        if (div->divisor == mod->divisor && is_congruent(whole, dividend, mod->divisor)) {
          if (auto next = replace(term, other, whole, term.coefficient)) return next;
        }
        // (x // a) % m and x // (a*m) are the parts of x // a.
        const auto inner = div->divisor % mod->divisor == 0 ? QuotientOf(dividend) : std::nullopt;
        if (!inner.has_value() || inner->divisor != div->divisor / mod->divisor) continue;
        if (!is_congruent(whole, Canonical(inner->dividend), div->divisor)) continue;
        if (auto next = replace(term, other, FloorDivideBy(whole, inner->divisor), term.coefficient)) return next;
      }
      const auto outer = MatchByConstant(*other.only_factor(), BinaryOp::kFloorMod);
      const auto product = outer.has_value() ? ir::CheckedMul(mod->divisor, outer->divisor) : std::nullopt;
      if (!product.has_value()) continue;
      // The outer dividend is (whole // m) + rest, so both remainders are parts of (whole + m*rest) % product.
      const LinearSum outer_dividend = Canonical(outer->dividend);
      for (const LinearTerm& part : outer_dividend.terms) {
        const auto div = part.coefficient == 1 && part.only_factor()
                             ? MatchByConstant(*part.only_factor(), BinaryOp::kFloorDiv)
                             : std::nullopt;
        if (!div.has_value() || div->divisor != mod->divisor) continue;
        const LinearSum whole = Canonical(div->dividend);
        if (!is_congruent(whole, dividend, mod->divisor)) continue;
        const auto rest = AddTerm(outer_dividend, part, -1);
        const auto joined = Add(whole, rest, mod->divisor);
        if (!joined.has_value()) continue;
        if (auto next = replace(term, other, FloorModuloBy(*joined, *product), term.coefficient)) return next;
      }
    }
  }
  // By symbols, n: k*(x % n) + k*n*(x // n) = k*x, where n may be a sum, and further symbols stand in k, too.
  for (const LinearTerm& term : sum.terms) {
    for (const PrimExpr& factor : term.factors) {
      const auto* mod = As<BinaryNode>(factor);
      if (mod == nullptr || mod->op != BinaryOp::kFloorMod || ir::AsConstInt(mod->b)) continue;
      const PrimExpr quotient = ir::FloorDiv(mod->a, mod->b);
      const bool is_divided = std::any_of(sum.terms.begin(), sum.terms.end(), [&](const LinearTerm& other) {
        return std::any_of(other.factors.begin(), other.factors.end(),
                           [&](const PrimExpr& have) { return SameExpr(have, quotient); });
      });
      if (!is_divided) continue;
      LinearTerm k{term.coefficient, {}};
      for (const PrimExpr& other : term.factors) {
        if (other.get() != factor.get()) k.factors.push_back(other);
      }
      LinearSum scale = LinearSum::Constant(sum.dtype, k.factors.empty() ? k.coefficient : 0);
      if (!k.factors.empty()) scale.terms.push_back(std::move(k));
      const auto product = [](const std::optional<LinearSum>& x, const LinearSum& y) {
        return x.has_value() ? Multiply(*x, y) : std::nullopt;
      };
      const auto multiple = product(Multiply(LinearSum::Atom(quotient), Canonical(mod->b)), scale);
      const auto without = Add(AddTerm(sum, term, -1), multiple, -1);
      if (!without.has_value() || without->terms.size() + multiple->terms.size() + 1 != sum.terms.size()) continue;
      auto next = Add(without, Multiply(Canonical(mod->a), scale));
      if (next.has_value() && CountDivisions(*next) < CountDivisions(sum)) return next;
    }
  }
  // A quotient whose remainder is known (by an assumption) is exact.
  if (known_values_.empty()) return std::nullopt;
  for (const LinearTerm& term : sum.terms) {
    const auto div = term.only_factor() ? MatchByConstant(*term.only_factor(), BinaryOp::kFloorDiv) : std::nullopt;
    if (!div.has_value() || term.coefficient % div->divisor != 0) continue;
    const LinearSum dividend = Canonical(div->dividend);
    const auto remainder = FloorModuloBy(dividend, div->divisor);
    if (!remainder.has_value() || !remainder->is_constant()) continue;
    return Add(AddTerm(sum, term, -1), Add(dividend, remainder, -1), term.coefficient / div->divisor);
  }
  return std::nullopt;
}

}  // namespace ingot::arith
