// Matrix products and determinants.
#include "compiler/importer/ops/families.h"

#include <cmath>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

Result<Expr> TransposedMatrix(const NodeImporter& node, Expr x) {
  return node.Bind("permute_dims", {std::move(x)}, {{"axes", AttrValue::Ints({1, 0})}});
}

// alpha * A' * B' + beta * C. Integers are scaled in float64 by numbers that are no integers, and the sum is rounded
// towards zero.
Outputs Gemm(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr a, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr b, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* a_type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* b_type, node.InputType(1));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("alpha", 1));
  INGOT_ASSIGN_OR_RETURN(const double beta, node.Float("beta", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t trans_a, node.Int("transA", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t trans_b, node.Int("transB", 0));
  if (a_type->rank != 2 || b_type->rank != 2) {
    return node.Invalid("expected matrices, got ranks " + std::to_string(a_type->rank) + " and " +
                        std::to_string(b_type->rank));
  }
  DataType dtype = *a_type->dtype;
  const bool has_bias = node.HasInput(2) && beta != 0;
  const auto scaled = [&node, &dtype](Expr x, double factor) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(Expr scalar, node.Scalar(factor, dtype));
    return node.Bind("multiply", {std::move(x), std::move(scalar)});
  };
  if (trans_a != 0) {
    INGOT_ASSIGN_OR_RETURN(a, TransposedMatrix(node, std::move(a)));
  }
  if (trans_b != 0) {
    INGOT_ASSIGN_OR_RETURN(b, TransposedMatrix(node, std::move(b)));
  }
  if (!has_bias && alpha == 1) return One(node.Call("matmul", {a, b}));
  INGOT_ASSIGN_OR_RETURN(Expr product, node.Bind("matmul", {a, b}));
  const auto is_fraction = [](double factor) { return std::trunc(factor) != factor; };
  if (dtype.is_integral() && (is_fraction(alpha) || (has_bias && is_fraction(beta)))) {
    dtype = DataType::Float(64);
    INGOT_ASSIGN_OR_RETURN(product, CastTo(node, std::move(product), dtype));
  }
  if (!has_bias && dtype == *a_type->dtype) {
    INGOT_ASSIGN_OR_RETURN(const Expr scalar, node.Scalar(alpha, dtype));
    return One(node.Call("multiply", {product, scalar}));
  }
  if (alpha != 1) {
    INGOT_ASSIGN_OR_RETURN(product, scaled(std::move(product), alpha));
  }
  if (!has_bias) return One(CastTo(node, std::move(product), *a_type->dtype));
  INGOT_ASSIGN_OR_RETURN(Expr c, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(c, CastTo(node, std::move(c), dtype));
  if (beta != 1) {
    INGOT_ASSIGN_OR_RETURN(c, scaled(std::move(c), beta));
  }
  INGOT_ASSIGN_OR_RETURN(c, BroadcastInto(node, std::move(c), *ir::As<ir::TensorTypeNode>(product->type)->dims));
  if (dtype == *a_type->dtype) return One(node.Call("add", {product, c}));
  INGOT_ASSIGN_OR_RETURN(product, node.Bind("add", {product, c}));
  return One(CastTo(node, std::move(product), *a_type->dtype));
}

// Of matrices in the last two axes. Narrow floats are eliminated in float32.
Outputs Det(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  const DataType dtype = DTypeOf(x);
  if (dims.size() < 2) return node.Invalid("expected matrices, got a rank of " + std::to_string(dims.size()));
  if (!dtype.is_floating()) return node.Invalid("expected floats, got " + dtype.ToString());
  const PrimExpr size = dims.back();
  dims.resize(dims.size() - 2);
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, dtype == DataType::Float(64) ? dtype : DataType::Float(32)));
  const PrimExpr other = DimsOf(x)[dims.size()];
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({Product(dims), other, size})}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("linalg.det", {x}));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, dtype));
  return One(ReshapeTo(node, std::move(x), std::move(dims)));
}

constexpr OnnxOpRow kLinearRows[] = {
    {"Det", nullptr, Det},
    {"Gemm", nullptr, Gemm},
    {"MatMul", "matmul"},
};

}  // namespace

std::span<const OnnxOpRow> LinearOnnxOps() { return kLinearRows; }

}  // namespace ingot::importer
