// Checked arithmetic on linear sums, and the way back to an expression. Terms with equal factors are joined when a term
// is added; a product of sums that would have too many terms is refused.
#include "compiler/arith/linear_sum.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/float_format.h"
#include "compiler/ir/int_math.h"
#include "compiler/ir/structural.h"

namespace ingot::arith {
namespace {

using ir::As;
using ir::PrimExpr;

constexpr size_t kMaxProductTerms = 64;  // a product of sums beyond this stays a product

bool Fits(DataType dtype, int64_t value) { return ir::WrapInt(dtype, value) == value; }

PrimExpr TermToExpr(const LinearTerm& term, int64_t coefficient) {
  PrimExpr product = term.factors[0];
  for (size_t i = 1; i < term.factors.size(); ++i) product = product * term.factors[i];
  return coefficient == 1 ? product : product * coefficient;
}

}  // namespace

bool SameExpr(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  if (a->kind != b->kind || a->dtype != b->dtype) return false;
  if (const auto* x = As<ir::IntImmNode>(a)) return x->value == As<ir::IntImmNode>(b)->value;
  if (a->kind == ir::PrimKind::kPrimVar) return false;
  if (const auto* x = As<ir::BinaryNode>(a)) {
    const auto* y = As<ir::BinaryNode>(b);
    return x->op == y->op && SameExpr(x->a, y->a) && SameExpr(x->b, y->b);
  }
  return ir::StructuralEqual(a, b);
}

bool SameFactors(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
  return a.size() == b.size() && std::is_permutation(a.begin(), a.end(), b.begin(), SameExpr);
}

bool SameSum(const LinearSum& a, const LinearSum& b) {
  const auto difference = AddScaled(a, b, -1);
  return difference.has_value() && difference->is_zero();
}

std::optional<LinearSum> AddTerm(LinearSum sum, const LinearTerm& term, int64_t scale) {
  const std::optional<int64_t> added = ir::CheckedMul(term.coefficient, scale);
  if (!added.has_value()) return std::nullopt;
  for (auto it = sum.terms.begin(); it != sum.terms.end(); ++it) {
    if (!SameFactors(it->factors, term.factors)) continue;
    const std::optional<int64_t> coefficient = ir::CheckedAdd(it->coefficient, *added);
    if (!coefficient.has_value() || !Fits(sum.dtype, *coefficient)) return std::nullopt;
    it->coefficient = *coefficient;
    if (*coefficient == 0) sum.terms.erase(it);
    return sum;
  }
  if (!Fits(sum.dtype, *added)) return std::nullopt;
  if (*added != 0) sum.terms.push_back({*added, term.factors});
  return sum;
}

std::optional<LinearSum> AddScaled(LinearSum sum, const LinearSum& other, int64_t scale) {
  const std::optional<int64_t> added = ir::CheckedMul(other.constant, scale);
  const std::optional<int64_t> constant = added.has_value() ? ir::CheckedAdd(sum.constant, *added) : std::nullopt;
  if (!constant.has_value() || !Fits(sum.dtype, *constant)) return std::nullopt;
  sum.constant = *constant;
  std::optional<LinearSum> result = std::move(sum);
  for (const LinearTerm& term : other.terms) {
    result = AddTerm(*std::move(result), term, scale);
    if (!result.has_value()) return std::nullopt;
  }
  return result;
}

std::optional<LinearSum> Scale(const LinearSum& sum, int64_t scale) {
  return AddScaled(LinearSum::Constant(sum.dtype, 0), sum, scale);
}

std::optional<LinearSum> Multiply(const LinearSum& a, const LinearSum& b) {
  if (b.is_constant()) return Scale(a, b.constant);
  if (a.is_constant()) return Scale(b, a.constant);
  if ((a.terms.size() + 1) * (b.terms.size() + 1) > kMaxProductTerms) return std::nullopt;
  std::optional<LinearSum> result = LinearSum::Constant(a.dtype, 0);
  for (const LinearTerm& x : a.terms) {
    for (const LinearTerm& y : b.terms) {
      if (!result.has_value()) return std::nullopt;
      const std::optional<int64_t> coefficient = ir::CheckedMul(x.coefficient, y.coefficient);
      if (!coefficient.has_value()) return std::nullopt;
      LinearTerm product{*coefficient, x.factors};
      product.factors.insert(product.factors.end(), y.factors.begin(), y.factors.end());
      result = AddTerm(*std::move(result), product, 1);
    }
    if (!result.has_value()) return std::nullopt;
    result = AddTerm(*std::move(result), x, b.constant);
  }
  return result.has_value() ? AddScaled(*std::move(result), b, a.constant) : std::nullopt;
}

int64_t CoefficientGcd(const LinearSum& sum) {
  int64_t gcd = 0;
  for (const LinearTerm& term : sum.terms) gcd = std::gcd(gcd, term.coefficient);
  return gcd;
}

PrimExpr ToExpr(const LinearSum& sum) {
  const auto lead = std::find_if(sum.terms.begin(), sum.terms.end(), [](const auto& t) { return t.coefficient > 0; });
  PrimExpr result;
  int64_t constant = sum.constant;
  if (lead != sum.terms.end()) {
    result = TermToExpr(*lead, lead->coefficient);
  } else if (constant != 0 || sum.terms.empty()) {
    result = ir::IntImm(sum.dtype, constant);
    constant = 0;
  }
  for (auto it = sum.terms.begin(); it != sum.terms.end(); ++it) {
    if (it == lead) continue;
    // The most negative coefficient has no positive counterpart in its dtype.
    const std::optional<int64_t> negated = ir::CheckedSub(0, it->coefficient);
    const bool subtract = it->coefficient < 0 && negated.has_value() && Fits(sum.dtype, *negated);
    if (!result) {
      result = TermToExpr(*it, it->coefficient);
    } else {
      result = subtract ? result - TermToExpr(*it, *negated) : result + TermToExpr(*it, it->coefficient);
    }
  }
  if (constant == 0) return result;
  const std::optional<int64_t> negated = ir::CheckedSub(0, constant);
  if (constant < 0 && negated.has_value() && Fits(sum.dtype, *negated)) return result - *negated;
  return result + constant;
}

}  // namespace ingot::arith
