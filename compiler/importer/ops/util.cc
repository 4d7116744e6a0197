#include "compiler/importer/ops/util.h"

#include "compiler/arith/analyzer.h"

namespace ingot::importer {

Result<std::vector<PrimExpr>> StaticRankDims(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  return *type->dims;
}

Expr ShapeOf(std::vector<PrimExpr> dims) { return ir::Make<ir::ShapeExprNode>(std::move(dims)); }

PrimExpr Product(std::span<const PrimExpr> dims) {
  PrimExpr product = ir::Int64(1);
  for (const PrimExpr& dim : dims) product = product * dim;
  return arith::Analyzer().Simplify(product);
}

Result<int64_t> NormaliseAxis(const NodeImporter& node, int64_t axis, int64_t rank, bool end_allowed) {
  const int64_t limit = end_allowed ? rank + 1 : rank;
  if (axis >= -rank && axis < limit) return axis < 0 ? axis + rank : axis;
  return node.Invalid("axis " + std::to_string(axis) + " is outside of rank " + std::to_string(rank));
}

Outputs One(Result<Expr> value) {
  if (!value.ok()) return std::move(value).status();
  return std::vector<Expr>{*std::move(value)};
}

// A view with other dims; the same expression when they are what it has.
Result<Expr> ReshapeTo(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims) {
  return node.Call("reshape", {std::move(x), ShapeOf(std::move(dims))});
}

// Axes are an attribute until opset 12 and an input from 13 on.
Result<std::vector<int64_t>> AxesOf(const NodeImporter& node) {
  if (node.HasInput(1)) return node.ConstantInts(1, "the axes");
  return node.Ints("axes", {});
}

}  // namespace ingot::importer
