// LinearSum: the canonical form of an integer expression: a sum of products of atoms with constant coefficients. An
// atom is whatever is no sum, product or constant: a variable, a quotient, a minimum, a load. Terms keep the order of
// their first occurrence, so building the expression again changes no more than it must. Every operation is checked
// and gives nothing where a coefficient would overflow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/ir/prim_expr.h"

namespace ingot::arith {

struct LinearTerm {
  int64_t coefficient;
  std::vector<ir::PrimExpr> factors;  // atoms, at least one; their order means nothing

  // The one atom of a term without other factors, else null.
  const ir::PrimExpr* only_factor() const { return factors.size() == 1 ? &factors[0] : nullptr; }
};

struct LinearSum {
  DataType dtype;
  std::vector<LinearTerm> terms;  // coefficients are not 0; no two have equal factors
  int64_t constant = 0;

  static LinearSum Constant(DataType dtype, int64_t value) { return {dtype, {}, value}; }
  static LinearSum Atom(ir::PrimExpr atom) { return {atom->dtype, {{1, {atom}}}, 0}; }
  bool is_constant() const { return terms.empty(); }
  bool is_zero() const { return terms.empty() && constant == 0; }
  // The atom when the sum is nothing else, else null.
  const ir::PrimExpr* only_atom() const {
    return terms.size() == 1 && constant == 0 && terms[0].coefficient == 1 ? terms[0].only_factor() : nullptr;
  }
};

// Whether two expressions are the same tree over the same variables.
bool SameExpr(const ir::PrimExpr& a, const ir::PrimExpr& b);
bool SameFactors(const std::vector<ir::PrimExpr>& a, const std::vector<ir::PrimExpr>& b);
bool SameSum(const LinearSum& a, const LinearSum& b);

// sum + scale * other, and products; nothing on overflow (of the dtype too).
std::optional<LinearSum> AddScaled(LinearSum sum, const LinearSum& other, int64_t scale);
std::optional<LinearSum> AddTerm(LinearSum sum, const LinearTerm& term, int64_t scale);
std::optional<LinearSum> Scale(const LinearSum& sum, int64_t scale);
std::optional<LinearSum> Multiply(const LinearSum& a, const LinearSum& b);
// The greatest divisor of every coefficient (not of the constant); 0 without terms.
int64_t CoefficientGcd(const LinearSum& sum);

// The expression: terms in order, a positive one first if there is one, the constant last.
ir::PrimExpr ToExpr(const LinearSum& sum);

}  // namespace ingot::arith
