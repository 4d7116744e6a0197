// A sum of products is a polynomial over its atoms. As one in an atom x alone its last coefficient is a sum q without x,
// and division by q gives p = a * q + r: of a product whose other factors do not have x, nothing is left, and of one that
// rounding up was added to, a number. The atom is taken that leaves the fewest terms in all, and the parts are factored
// further. Where none saves a term, the sum is x * (...) + (...) with the atom x that most terms have.
#include "compiler/arith/factor.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/arith/linear_sum.h"
#include "compiler/ir/int_math.h"
#include "compiler/ir/visitor.h"

namespace ingot::arith {
namespace {

using ir::PrimExpr;

using Powers = std::vector<int>;                                     // of each atom
using Polynomial = std::map<Powers, int64_t, std::greater<Powers>>;  // coefficients other than 0, the leading one first

// Numbers that have opposites and quotients.
bool Fits(int64_t number) { return number >= -(int64_t{1} << 62) && number <= int64_t{1} << 62; }

// Whether no number becomes too large.
bool AddTo(Polynomial& sum, const Powers& powers, int64_t coefficient) {
  const auto at = sum.try_emplace(powers, 0).first;
  const std::optional<int64_t> added = ir::CheckedAdd(at->second, coefficient);
  at->second = added.value_or(0);
  const bool fits = added && Fits(*added);
  if (at->second == 0) sum.erase(at);
  return fits;
}

bool IsConstant(const Polynomial& sum) {
  return std::ranges::all_of(
      sum, [](const auto& term) { return std::ranges::count(term.first, 0) == std::ssize(term.first); });
}

// a * b + rest.
struct Parts {
  Polynomial a, b, rest;
  size_t num_terms() const { return a.size() + b.size() + rest.size(); }
};

// Division with rest, from the leading terms on; nothing where a number overflows, or where the parts would have more
// terms than the sum.
std::optional<Parts> Divided(Polynomial sum, const Polynomial& by) {
  Parts parts{{}, by, {}};
  const size_t most = sum.size();
  const auto& [lead, divisor] = *by.begin();
  while (!sum.empty()) {
    if (parts.num_terms() > most) return std::nullopt;
    const auto [powers, coefficient] = *sum.begin();
    Powers quotient = powers;
    std::ranges::transform(powers, lead, quotient.begin(), std::minus());
    if (coefficient % divisor != 0 || std::ranges::any_of(quotient, [](int power) { return power < 0; })) {
      parts.rest.emplace(powers, coefficient);
      sum.erase(sum.begin());
      continue;
    }
    const int64_t number = coefficient / divisor;
    parts.a.emplace(quotient, number);
    for (const auto& [other, factor] : by) {
      Powers product = quotient;
      std::ranges::transform(quotient, other, product.begin(), std::plus());
      const std::optional<int64_t> subtracted = ir::CheckedMul(-number, factor);
      if (!subtracted || !AddTo(sum, product, *subtracted)) return std::nullopt;
    }
  }
  return parts;
}

// The coefficient of the highest power of an atom, without the greatest number that divides it.
Polynomial LastCoefficient(const Polynomial& sum, size_t atom) {
  int highest = 0;
  for (const auto& [powers, coefficient] : sum) highest = std::max(highest, powers[atom]);
  Polynomial result;
  int64_t content = 0;
  for (const auto& [powers, coefficient] : sum) {
    if (powers[atom] != highest) continue;
    Powers others = powers;
    others[atom] = 0;
    result.emplace(std::move(others), coefficient);
    content = std::gcd(content, coefficient);
  }
  for (auto& [powers, coefficient] : result) coefficient /= content;
  return result;
}

class Builder {
 public:
  Builder(DataType dtype, std::vector<PrimExpr> atoms) : dtype_(dtype), atoms_(std::move(atoms)) {}

  PrimExpr Build(const Polynomial& sum) const {
    if (sum.size() < 2) return Plain(sum);
    if (const std::optional<Parts> parts = BestParts(sum)) {
      const PrimExpr product = Build(parts->a) * Build(parts->b);
      return parts->rest.empty() ? product : product + Build(parts->rest);
    }
    size_t most = 0;
    for (size_t i = 1; i < atoms_.size(); ++i) most = NumTermsWith(sum, i) > NumTermsWith(sum, most) ? i : most;
    if (NumTermsWith(sum, most) < 2) return Plain(sum);
    Polynomial with, without;
    for (const auto& [powers, coefficient] : sum) {
      Powers left = powers;
      const bool has = left[most]-- > 0;
      (has ? with : without).emplace(has ? std::move(left) : powers, coefficient);
    }
    const PrimExpr product = atoms_[most] * Build(with);
    return without.empty() ? product : product + Build(without);
  }

 private:
  std::optional<Parts> BestParts(const Polynomial& sum) const {
    std::optional<Parts> best;
    for (size_t i = 0; i < atoms_.size(); ++i) {
      if (NumTermsWith(sum, i) == 0) continue;
      const Polynomial by = LastCoefficient(sum, i);
      if (IsConstant(by)) continue;
      std::optional<Parts> parts = Divided(sum, by);
      if (!parts || IsConstant(parts->a) || parts->num_terms() > sum.size()) continue;
      if (!best || parts->num_terms() < best->num_terms()) best = std::move(parts);
    }
    return best;
  }
  static std::ptrdiff_t NumTermsWith(const Polynomial& sum, size_t atom) {
    return std::ranges::count_if(sum, [&](const auto& term) { return term.first[atom] > 0; });
  }
  PrimExpr Plain(const Polynomial& sum) const {
    LinearSum result = LinearSum::Constant(dtype_, 0);
    for (const auto& [powers, coefficient] : sum) {
      std::vector<PrimExpr> factors;
      for (size_t i = 0; i < atoms_.size(); ++i)
        factors.insert(factors.end(), static_cast<size_t>(powers[i]), atoms_[i]);
      if (factors.empty()) {
        result.constant = coefficient;
      } else {
        result.terms.push_back({coefficient, std::move(factors)});
      }
    }
    return ToExpr(result);
  }

  DataType dtype_;
  std::vector<PrimExpr> atoms_;
};

PrimExpr Factored(const LinearSum& sum) {
  std::vector<PrimExpr> atoms;
  const auto place = [&](const PrimExpr& factor) {
    const auto is_same = [&](const PrimExpr& atom) { return SameExpr(factor, atom); };
    return static_cast<size_t>(std::ranges::find_if(atoms, is_same) - atoms.begin());
  };
  // Terms that the parts of a formula of a file come from; a division takes as many steps times its divisor's terms.
  constexpr size_t kMostTerms = 128;
  if (!Fits(sum.constant) || sum.terms.size() > kMostTerms) return ToExpr(sum);
  for (const LinearTerm& term : sum.terms) {
    if (!Fits(term.coefficient)) return ToExpr(sum);
    for (const PrimExpr& factor : term.factors) {
      if (place(factor) == atoms.size()) atoms.push_back(factor);
    }
  }
  Polynomial polynomial;
  for (const LinearTerm& term : sum.terms) {
    Powers powers(atoms.size());
    for (const PrimExpr& factor : term.factors) ++powers[place(factor)];
    polynomial.emplace(std::move(powers), term.coefficient);
  }
  if (sum.constant != 0) polynomial.emplace(Powers(atoms.size()), sum.constant);
  return Builder(sum.dtype, std::move(atoms)).Build(polynomial);
}

class Factorer : public ir::PrimMutator {
 protected:
  using PrimMutator::Mutate;
  PrimExpr Mutate(const ir::Ref<ir::BinaryNode>& node) override {
    if (!IsSum(*node)) return PrimMutator::Mutate(node);
    const std::optional<LinearSum> sum = SumOf(node);
    return sum ? Factored(*sum) : PrimMutator::Mutate(node);
  }

 private:
  static bool IsSum(const ir::BinaryNode& node) {
    return node.dtype.is_int() && node.dtype.is_scalar() &&
           (node.op == ir::BinaryOp::kAdd || node.op == ir::BinaryOp::kSub || node.op == ir::BinaryOp::kMul);
  }
  // Nothing where a number overflows, or there are too many terms.
  std::optional<LinearSum> SumOf(const PrimExpr& expr) {
    if (const auto constant = ir::AsConstInt(expr)) return LinearSum::Constant(expr->dtype, *constant);
    const auto* node = ir::As<ir::BinaryNode>(expr);
    if (node == nullptr || !IsSum(*node)) return LinearSum::Atom(MutatePrim(expr));
    const std::optional<LinearSum> a = SumOf(node->a), b = SumOf(node->b);
    if (!a || !b) return std::nullopt;
    if (node->op == ir::BinaryOp::kMul) return Multiply(*a, *b);
    return AddScaled(*a, *b, node->op == ir::BinaryOp::kAdd ? 1 : -1);
  }
};

}  // namespace

PrimExpr FactorSums(const PrimExpr& expr) { return Factorer().MutatePrim(expr); }

}  // namespace ingot::arith
