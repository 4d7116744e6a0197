// The helpers of the evaluation: dims, strides, broadcasting, and the check of each result (Finish), which bounds the
// size of expressions and the range of numbers.
#include "compiler/importer/shape_evaluation.h"

#include <cmath>
#include <limits>

#include "compiler/importer/symbols.h"

namespace ingot::importer::shapes {
namespace {

// The limit of nodes per expression: about what fits into a file's dimension code.
constexpr int kMaxExprNodes = 60;

}  // namespace

bool IsConstant(const PrimExpr& expr) {
  return expr->kind == ir::PrimKind::kIntImm || expr->kind == ir::PrimKind::kFloatImm;
}

std::optional<int64_t> CountOf(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || dim > kMaxElements) return std::nullopt;
    count *= dim;
    if (count > kMaxElements) return std::nullopt;
  }
  return count;
}

std::optional<int64_t> Axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

Dims StridesOf(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

std::optional<Dims> Broadcast(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i + a.size() < out.size() ? 1 : a[i + a.size() - out.size()];
    const int64_t y = i + b.size() < out.size() ? 1 : b[i + b.size() - out.size()];
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[i] = x == 1 ? y : x;
  }
  return out;
}

std::optional<ShapeValue> BroadcastTo(const ShapeValue& x, const Dims& dims) {
  const Dims strides = StridesOf(x.dims);
  return Take(x, dims, [&](const Dims& index) {
    int64_t at = 0;
    for (size_t i = 0; i < x.dims.size(); ++i) {
      if (x.dims[i] != 1) at += index[i + index.size() - x.dims.size()] * strides[i];
    }
    return at;
  });
}

double NumberOf(const PrimExpr& constant) {
  if (const auto* number = ir::As<ir::FloatImmNode>(constant)) return number->value;
  return static_cast<double>(*ir::AsConstInt(constant));
}

PrimExpr FloatOfInteger(DataType dtype, int64_t value) {
  return FloatOf(dtype, dtype == DataType::Float(32) ? static_cast<double>(static_cast<float>(value))
                                                     : static_cast<double>(value));
}

PrimExpr FloatOf(DataType dtype, double value) {
  if (dtype == DataType::Float(32)) value = static_cast<double>(static_cast<float>(value));
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const bool is_whole = std::trunc(value) == value && std::abs(value) < kExact && !(value == 0 && std::signbit(value));
  return is_whole ? ir::Int64(static_cast<int64_t>(value)) : ir::FloatImm(dtype, value);
}

Evaluation::Evaluation(const NodeImporter& node, arith::Analyzer& analyzer, Conditions& conditions)
    : node_(node), analyzer_(analyzer), conditions_(conditions) {
  for (size_t i = 0; i < node.num_inputs(); ++i) inputs_.push_back(node.Formula(i));
}

std::optional<PrimExpr> Evaluation::Finish(DataType dtype, PrimExpr element) const {
  if (!IsConstant(element)) {
    element = analyzer_.Simplify(element);
    if (element->dtype.is_bool() && !IsConstant(element)) {
      if (analyzer_.Prove(element))
        element = ir::BoolImm(true);
      else if (analyzer_.Prove(ir::Not(element)))
        element = ir::BoolImm(false);
    }
  }
  const auto value = ir::AsConstInt(element);
  if (dtype == DataType::Int(32) && value &&
      (*value < std::numeric_limits<int32_t>::min() || *value > std::numeric_limits<int32_t>::max())) {
    return std::nullopt;
  }
  if (!IsConstant(element) && !conditions_.Keeps(dtype, element)) return std::nullopt;
  if (CountNodes(element, kMaxExprNodes) >= kMaxExprNodes) return std::nullopt;
  return element;
}

Outputs One(std::optional<ShapeValue> value) {
  if (!value.has_value()) return std::nullopt;
  return std::vector<ShapeValue>{*std::move(value)};
}

}  // namespace ingot::importer::shapes
