// Without graphs it is the attention operator; with them a product, a softmax and a product.
#include "compiler/importer/ops/flex_attention.h"

#include <cmath>
#include <string>
#include <utility>

#include "compiler/importer/ops/attention_mask.h"
#include "compiler/importer/ops/contrib.h"
#include "compiler/op/infer.h"

namespace ingot::importer {

Result<FlexAttention> ReadFlexAttention(const NodeImporter& node) {
  INGOT_RETURN_IF_ERROR(CheckAttributes(node, {"prob_mod", "scale", "score_mod", "softmax_precision"}));
  FlexAttention a;
  Expr* const operands[] = {&a.query, &a.key, &a.value};
  for (size_t i = 0; i < std::size(operands); ++i) {
    INGOT_ASSIGN_OR_RETURN(*operands[i], node.Input(i));
    INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(i));
    if (type->rank != 4) return node.Invalid("expected a rank of 4, got " + std::to_string(type->rank));
    if (!type->dtype->is_floating() || *type->dtype != DTypeOf(a.query)) {
      return node.Invalid("expected floats of one dtype");
    }
  }
  const std::vector<PrimExpr> q = DimsOf(a.query);
  std::vector<PrimExpr> k = DimsOf(a.key), v = DimsOf(a.value);
  const auto heads = ir::AsConstInt(q[1]), key_heads = ir::AsConstInt(k[1]), depth = ir::AsConstInt(q[3]);
  if (!heads || !key_heads) return node.Unsupported("an unknown number of heads");
  if (*key_heads < 1 || *heads % *key_heads != 0) return node.Invalid("heads of queries are no multiple of the keys'");
  k[0] = v[0] = q[0];
  k[3] = q[3];
  v[1] = k[1];
  v[2] = k[2];
  a.key = WithDims(node, std::move(a.key), k);
  a.value = WithDims(node, std::move(a.value), v);
  INGOT_ASSIGN_OR_RETURN(a.scale, node.Float("scale", 0));
  if (!node.HasAttr("scale")) {
    if (!depth) return node.Unsupported("heads of unknown depth");
    a.scale = 1 / std::sqrt(static_cast<double>(*depth));
  }
  // The operator multiplies queries and keys each by a root that it takes in float32, whatever their dtype.
  const double root = std::sqrt(static_cast<float>(a.scale));
  a.scale = root * root;
  const DataType dtype = DTypeOf(a.query);
  a.precision = dtype == DataType::Float(64) ? dtype : DataType::Float(32);
  if (node.HasAttr("softmax_precision")) {
    INGOT_ASSIGN_OR_RETURN(const int64_t number, node.Int("softmax_precision", 0));
    INGOT_ASSIGN_OR_RETURN(a.precision, OnnxDataType(number));
    const bool is_float = a.precision.is_floating() && a.precision.bits >= 16;
    if (!is_float) return node.Invalid("softmax_precision is " + a.precision.ToString());
  }
  return a;
}

Result<Expr> PlainFlexAttention(const NodeImporter& node, const FlexAttention& a) {
  const DataType dtype = DTypeOf(a.query);
  std::vector<Expr> operands = {a.query, a.key, a.value};
  const bool is_wider = a.precision == DataType::Float(64) && dtype != a.precision;
  for (Expr& operand : operands) {
    if (!is_wider) break;
    INGOT_ASSIGN_OR_RETURN(operand, CastTo(node, operand, a.precision));
  }
  ir::Attrs attrs = {{"scale", a.scale}, {"stepwise", true}, {"layouts", ir::AttrList{"BNSH", "BNSH", "BNSH", "BNSH"}}};
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("nn.attention", std::move(operands), std::move(attrs)));
  return CastTo(node, std::move(y), dtype);
}

Result<Expr> FlexScores(const NodeImporter& node, const FlexAttention& a) {
  INGOT_ASSIGN_OR_RETURN(Expr scores, AttentionScores(node, a.query, a.key, {a.scale, 0, 0, nullptr}));
  return CastTo(node, std::move(scores), a.precision);
}

Result<Expr> CheckedModification(const NodeImporter& node, const char* graph, const Expr& before, Expr after) {
  const auto* type = ir::As<ir::TensorTypeNode>(after->type);
  const auto refuse = [&](const std::string& what) { return node.Invalid(std::string(graph) + " gives " + what); };
  if (type == nullptr || !type->dims || !type->dtype) return refuse("a value of unknown shape");
  if (*type->dtype != DTypeOf(before)) return refuse(type->dtype->ToString());
  if (type->rank != 4) return refuse("a tensor of rank " + std::to_string(type->rank));
  return WithDims(node, std::move(after), DimsOf(before));
}

Result<Expr> FlexShares(const NodeImporter& node, const Expr& scores) {
  return node.Bind("nn.softmax", {scores}, {{"axis", int64_t{-1}}});
}

Result<Expr> FlexResult(const NodeImporter& node, const FlexAttention& a, Expr shares) {
  const DataType dtype = DTypeOf(a.query);
  const std::vector<PrimExpr> q = DimsOf(a.query), v = DimsOf(a.value);
  INGOT_ASSIGN_OR_RETURN(Expr value, CastTo(node, a.value, a.precision));
  if (op::DimsEqual(q[1], v[1])) {
    INGOT_ASSIGN_OR_RETURN(shares, node.Bind("matmul", {shares, value}));
    return CastTo(node, std::move(shares), dtype);
  }
  const PrimExpr group = op::SimplifyDim(ir::FloorDiv(q[1], v[1]));
  INGOT_ASSIGN_OR_RETURN(shares, node.Bind("reshape", {shares, ShapeOf({q[0], v[1], group, q[2], v[2]})}));
  INGOT_ASSIGN_OR_RETURN(value, node.Bind("reshape", {value, ShapeOf({v[0], v[1], ir::Int64(1), v[2], v[3]})}));
  INGOT_ASSIGN_OR_RETURN(Expr y, node.Bind("matmul", {shares, value}));
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("reshape", {y, ShapeOf({q[0], q[1], q[2], v[3]})}));
  return CastTo(node, std::move(y), dtype);
}

}  // namespace ingot::importer
