// Positions of queries and keys as integer tensors, whose comparisons give the bias; and the scores as a product of
// matrices with its scale, cap, bias and softmax.
#include "compiler/importer/ops/attention_mask.h"

#include <limits>
#include <utility>
#include <vector>

#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// Returns begin, begin + 1, ... as int64, in these dims.
Result<Expr> Positions(const NodeImporter& node, const PrimExpr& begin, const PrimExpr& count,
                       std::vector<PrimExpr> dims) {
  const auto prim = [](PrimExpr value) -> Expr { return ir::Make<ir::PrimValueNode>(std::move(value)); };
  INGOT_ASSIGN_OR_RETURN(const Expr range,
                         node.Bind("arange", {prim(begin), prim(op::SimplifyDim(begin + count)), prim(ir::Int64(1))},
                                   {{"dtype", DataType::Int(64)}}));
  return node.Bind("reshape", {range, ShapeOf(std::move(dims))});
}

Result<Expr> And(const NodeImporter& node, const Expr& a, Expr b) {
  return a == nullptr ? Result<Expr>(std::move(b)) : node.Bind("logical_and", {a, std::move(b)});
}

}  // namespace

Result<Expr> VisibilityBias(const NodeImporter& node, const KeyVisibility& visibility, DataType dtype) {
  const DataType index = DataType::Int(64);
  const PrimExpr one = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(const Expr keys,
                         Positions(node, ir::Int64(0), visibility.num_keys, {one, visibility.num_keys}));
  Expr counting, seen;
  if (visibility.num_counting != nullptr) {
    const PrimExpr batch = DimsOf(visibility.num_counting)[0];
    INGOT_ASSIGN_OR_RETURN(counting, node.Bind("reshape", {visibility.num_counting, ShapeOf({batch, one, one, one})}));
    INGOT_ASSIGN_OR_RETURN(seen, node.Bind("less", {keys, counting}));
  }
  if (visibility.is_causal || visibility.left || visibility.right) {
    INGOT_ASSIGN_OR_RETURN(Expr places,
                           Positions(node, visibility.past, visibility.num_queries, {visibility.num_queries, one}));
    if (counting != nullptr) {
      const PrimExpr back = op::SimplifyDim(ir::Int64(0) - visibility.num_queries);
      INGOT_ASSIGN_OR_RETURN(places, Positions(node, back, visibility.num_queries, {visibility.num_queries, one}));
      INGOT_ASSIGN_OR_RETURN(places, node.Bind("add", {counting, places}));
    }
    // distance from the key to the query's position
    INGOT_ASSIGN_OR_RETURN(const Expr behind, node.Bind("subtract", {places, keys}));
    const auto limit = [&](const char* row, int64_t distance) -> Status {
      INGOT_ASSIGN_OR_RETURN(const Expr bound, node.Scalar(distance, index));
      INGOT_ASSIGN_OR_RETURN(const Expr within, node.Bind(row, {behind, bound}));
      INGOT_ASSIGN_OR_RETURN(seen, And(node, seen, within));
      return Status();
    };
    if (visibility.is_causal) INGOT_RETURN_IF_ERROR(limit("greater_equal", 0));
    if (visibility.left) INGOT_RETURN_IF_ERROR(limit("less_equal", *visibility.left));
    if (visibility.right) INGOT_RETURN_IF_ERROR(limit("greater_equal", -*visibility.right));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr hidden, node.Scalar(-std::numeric_limits<double>::infinity(), dtype));
  return node.Bind("where", {seen, zero, hidden});
}

Result<Expr> AttentionScores(const NodeImporter& node, Expr query, Expr key, const ScoreOptions& options) {
  const std::vector<PrimExpr> q = DimsOf(query), k = DimsOf(key);
  const DataType dtype = DTypeOf(query);
  INGOT_ASSIGN_OR_RETURN(const Expr scale, node.Scalar(options.scale, dtype));
  INGOT_ASSIGN_OR_RETURN(query, node.Bind("multiply", {query, scale}));
  INGOT_ASSIGN_OR_RETURN(key, node.Bind("permute_dims", {key}, {{"axes", AttrValue::Ints({0, 1, 3, 2})}}));
  // Query heads that share a key head follow each other.
  const PrimExpr group = op::SimplifyDim(ir::FloorDiv(q[1], k[1]));
  INGOT_ASSIGN_OR_RETURN(query, node.Bind("reshape", {query, ShapeOf({q[0], k[1], group, q[2], q[3]})}));
  INGOT_ASSIGN_OR_RETURN(key, node.Bind("reshape", {key, ShapeOf({k[0], k[1], ir::Int64(1), k[3], k[2]})}));
  INGOT_ASSIGN_OR_RETURN(Expr scores, node.Bind("matmul", {query, key}));
  INGOT_ASSIGN_OR_RETURN(scores, node.Bind("reshape", {scores, ShapeOf({q[0], q[1], q[2], k[2]})}));
  if (options.mode == 0) return scores;
  if (options.softcap != 0) {
    INGOT_ASSIGN_OR_RETURN(const Expr cap, node.Scalar(options.softcap, dtype));
    INGOT_ASSIGN_OR_RETURN(scores, node.Bind("divide", {scores, cap}));
    INGOT_ASSIGN_OR_RETURN(scores, node.Bind("tanh", {scores}));
    INGOT_ASSIGN_OR_RETURN(scores, node.Bind("multiply", {scores, cap}));
  }
  if (options.mode == 1) return scores;
  if (options.bias != nullptr) {
    INGOT_ASSIGN_OR_RETURN(scores, node.Bind("add", {scores, options.bias}));
  }
  if (options.mode == 2) return scores;
  INGOT_ASSIGN_OR_RETURN(const Expr shares, node.Bind("nn.softmax", {scores}, {{"axis", int64_t{-1}}}));
  if (options.bias == nullptr) return shares;
  // A query that may see no key gets zeros instead of the softmax.
  INGOT_ASSIGN_OR_RETURN(const Expr best,
                         node.Bind("max", {options.bias}, {{"axis", AttrValue::Ints({-1})}, {"keepdims", true}}));
  INGOT_ASSIGN_OR_RETURN(const Expr hidden, node.Scalar(-std::numeric_limits<double>::infinity(), dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr sees_nothing, node.Bind("equal", {best, hidden}));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, dtype));
  return node.Bind("where", {sees_nothing, zero, shares});
}

}  // namespace ingot::importer
