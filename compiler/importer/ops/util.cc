// Each helper is one or two calls of operators through NodeImporter.
#include "compiler/importer/ops/util.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/float_format.h"
#include "compiler/op/infer.h"

namespace ingot::importer {

Result<std::vector<PrimExpr>> StaticRankDims(const NodeImporter& node, size_t input) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  return *type->dims;
}

Expr PrimTuple(const std::vector<PrimExpr>& values) {
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (const PrimExpr& value : values) {
    fields.push_back(ir::Make<ir::PrimValueNode>(value));
    types.push_back(fields.back()->type);
  }
  return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
}
Expr PrimTuple(const std::vector<int64_t>& values) {
  std::vector<PrimExpr> exprs;
  for (int64_t value : values) exprs.push_back(ir::Int64(value));
  return PrimTuple(exprs);
}

Result<Expr> CastTo(const NodeImporter& node, Expr x, DataType dtype) {
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  if (type != nullptr && type->dtype == dtype) return x;
  return node.Bind("astype", {std::move(x)}, {{"dtype", dtype}});
}

const std::vector<PrimExpr>& DimsOf(const Expr& x) { return *ir::As<ir::TensorTypeNode>(x->type)->dims; }
DataType DTypeOf(const Expr& x) { return *ir::As<ir::TensorTypeNode>(x->type)->dtype; }

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

Outputs Fields(Result<Expr> call) {
  if (!call.ok()) return std::move(call).status();
  const auto* type = ir::As<ir::TupleTypeNode>((*call)->type);
  if (type == nullptr) return std::vector<Expr>{*std::move(call)};
  std::vector<Expr> fields;
  for (size_t i = 0; i < type->fields.size(); ++i) {
    fields.push_back(ir::Make<ir::TupleGetItemNode>(*call, static_cast<int64_t>(i), type->fields[i]));
  }
  return fields;
}

Expr WithDims(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims) {
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  const bool is_proved = type->dims && std::ranges::equal(*type->dims, dims, op::DimsEqual);
  if (is_proved) return x;
  const auto dtype = type->dtype;
  return node.Match(std::move(x), ir::Make<ir::TensorTypeNode>(std::move(dims), dtype));
}

Result<Expr> BroadcastInto(const NodeImporter& node, Expr x, const std::vector<PrimExpr>& dims) {
  const std::vector<PrimExpr>& own = *ir::As<ir::TensorTypeNode>(x->type)->dims;
  bool is_proved = own.size() <= dims.size();
  for (size_t i = 1; is_proved && i <= own.size(); ++i) {
    const PrimExpr& dim = own[own.size() - i];
    is_proved = ir::IsConstInt(dim, 1) || op::DimsEqual(dim, dims[dims.size() - i]);
  }
  if (is_proved) return x;
  return node.Bind("broadcast_to", {std::move(x), ShapeOf(dims)});
}

// Returns a view with other dims; x itself if it has these dims.
Result<Expr> ReshapeTo(const NodeImporter& node, Expr x, std::vector<PrimExpr> dims) {
  return node.Call("reshape", {std::move(x), ShapeOf(std::move(dims))});
}

Result<Expr> Unpacked(Expr x) {
  const auto* constant = ir::As<ir::ConstantNode>(x);
  if (constant == nullptr || constant->data->dtype().bits >= 8) return x;
  const DataType dtype = constant->data->dtype().is_int() ? DataType::Int(8) : DataType::UInt(8);
  INGOT_ASSIGN_OR_RETURN(const ir::Call call, op::MakeCall("astype", {x}, {{"dtype", dtype}}));
  const std::vector<std::shared_ptr<const ir::ConstantData>> packed = {constant->data};
  INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const ir::ConstantData> data, op::RowOf(call)->fold(call, packed));
  return Expr(ir::Make<ir::ConstantNode>(std::move(data), constant->name));
}

Result<Expr> ConvertTo(const NodeImporter& node, Expr x, DataType dtype) {
  if (dtype.bits >= 8) {
    INGOT_ASSIGN_OR_RETURN(x, Unpacked(std::move(x)));
  }
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  if (type == nullptr || !type->dtype) return node.Unsupported("a value of unknown type");
  if (type->dtype == dtype) return x;
  INGOT_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (dtype.is_floating() && dtype.bits == 8 && saturate != 0) {
    if (!type->dtype->is_floating()) {
      INGOT_ASSIGN_OR_RETURN(x, node.Bind("astype", {x}, {{"dtype", DataType::Float(32)}}));
    }
    const DataType from = *ir::As<ir::TensorTypeNode>(x->type)->dtype;
    const double limit = ir::LargestFinite(dtype);
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("clip", {x, ir::Make<ir::PrimValueNode>(ir::FloatImm(from, -limit)),
                                                 ir::Make<ir::PrimValueNode>(ir::FloatImm(from, limit))}));
  }
  return node.Call("astype", {x}, {{"dtype", dtype}});
}

// The axes are an attribute until opset 12 and an input from 13 on.
Result<std::vector<int64_t>> AxesOf(const NodeImporter& node) {
  if (node.HasInput(1)) return node.ConstantInts(1, "the axes");
  return node.Ints("axes", {});
}

}  // namespace ingot::importer
