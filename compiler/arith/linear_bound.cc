// Writes a comparison as a difference that is >= 0 where it holds, and solves that for the variable.
#include "compiler/arith/linear_bound.h"

namespace ingot::arith {

using namespace ir;  // NOLINT

namespace {

// The expression that is >= 0 exactly where the comparison holds; null for other operators than <, <=, > and >=.
PrimExpr DifferenceOf(const BinaryNode& comparison) {
  const PrimExpr &a = comparison.a, &b = comparison.b;
  if (comparison.op == BinaryOp::kLT) return b - a - 1;
  if (comparison.op == BinaryOp::kLE) return b - a;
  if (comparison.op == BinaryOp::kGT) return a - b - 1;
  if (comparison.op == BinaryOp::kGE) return a - b;
  return nullptr;
}

}  // namespace

PrimExpr LinearBound::PlaceFor(const PrimExpr& value_of_rest) const {
  const DataType dtype = value_of_rest->dtype;
  if (coefficient > 0) {  // var >= ceil(-rest / coefficient)
    return FloorDiv(IntImm(dtype, coefficient - 1) - value_of_rest, IntImm(dtype, coefficient));
  }
  return FloorDiv(value_of_rest, IntImm(dtype, -coefficient)) + 1;
}

std::optional<LinearBound> BoundOf(const PrimExpr& comparison, const PrimVar& var, Analyzer& analyzer) {
  const auto* binary = As<BinaryNode>(comparison);
  if (binary == nullptr || !binary->a->dtype.is_int() || !binary->a->dtype.is_scalar()) return std::nullopt;
  const PrimExpr difference = DifferenceOf(*binary);
  if (!difference) return std::nullopt;
  const std::optional<LinearForm> linear = DetectLinear(difference, {var});
  if (!linear) return std::nullopt;
  const std::optional<int64_t> coefficient = AsConstInt(analyzer.Simplify(linear->coefficients[0]));
  if (!coefficient || *coefficient == 0) return std::nullopt;
  return LinearBound{*coefficient, linear->constant};
}

}  // namespace ingot::arith
