// Decision trees: the leaf of each tree that each row of features reaches.
#include <algorithm>
#include <cmath>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

constexpr size_t kTreeData = 0, kTreeFeatures = 1, kTreeThresholds = 2, kTreeChildren = 3, kTreeRoots = 4;

// ---- tree_leaves: every tree is walked from its root: x <= threshold leads to a node's first child, x > threshold to
// its second, NaN to its third one. A child below 0 is the leaf -1 - child. No walk is longer than `depth`: what is no
// leaf then counts as the leaf 0; numbers of nodes and features that do not exist are those of the last ones.
Result<ir::Type> InferTreeLeaves(const ir::Call& call) {
  std::vector<ir::TensorType> types;
  for (size_t i = kTreeData; i <= kTreeRoots; ++i) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType type, TensorArg(call, i));
    types.push_back(type);
  }
  if (call->attrs.GetInt("depth") < 0) return OpError(call, "depth: expected an integer >= 0");
  INGOT_ASSIGN_OR_RETURN(const std::optional<DataType> dtype,
                         CommonDataType(call, types[kTreeData], types[kTreeThresholds]));
  if (dtype && *dtype != DataType::Float(32) && *dtype != DataType::Float(64)) {
    return OpError(call, "expected float32 or float64, got " + Describe(types[kTreeData]));
  }
  for (size_t i : {kTreeFeatures, kTreeChildren, kTreeRoots}) {
    if (types[i]->dtype && *types[i]->dtype != DataType::Int(32)) {
      return OpError(call, "expected int32, got " + Describe(types[i]));
    }
  }
  constexpr size_t kRanks[] = {2, 1, 1, 2, 1};
  for (size_t i = kTreeData; i <= kTreeRoots; ++i) {
    if (!types[i]->dims) return TensorOfRank(2, DataType::Int(32), types[kTreeData]);
    if (types[i]->dims->size() != kRanks[i]) {
      return OpError(call,
                     "expected data [rows, columns], features [nodes], thresholds [nodes], children [nodes, 3] "
                     "and roots [trees], got " +
                         Describe(types[i]));
    }
  }
  const PrimExpr& nodes = (*types[kTreeFeatures]->dims)[0];
  if (ir::IsConstInt(nodes, 0) || ir::IsConstInt((*types[kTreeData]->dims)[1], 0)) {
    return OpError(call, "expected at least one node and one column");
  }
  const Dims& children = *types[kTreeChildren]->dims;
  if (DimsDiffer((*types[kTreeThresholds]->dims)[0], nodes) || DimsDiffer(children[0], nodes) ||
      DimsDiffer(children[1], ir::Int64(3))) {
    return OpError(call, "expected as many thresholds and children as nodes");
  }
  return TensorOf({(*types[kTreeData]->dims)[0], (*types[kTreeRoots]->dims)[0]}, DataType::Int(32), types[kTreeData]);
}

Result<std::vector<ReferenceTensor>> ReferenceTreeLeaves(const ir::Call& call,
                                                         std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const int64_t columns = inputs[kTreeData].dims[1], nodes = inputs[kTreeFeatures].dims[0];
  ReferenceTensor out = NewReference(DataType::Int(32), dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    int64_t node = inputs[kTreeRoots].ints[static_cast<size_t>(at[1])];
    for (int64_t step = 0; node >= 0 && step < call->attrs.GetInt("depth"); ++step) {
      node = std::min(node, nodes - 1);
      const int64_t column = std::clamp<int64_t>(inputs[kTreeFeatures].ints[static_cast<size_t>(node)], 0, columns - 1);
      const double x = GetNumber(inputs[kTreeData], at[0] * columns + column);
      const int64_t which = std::isnan(x) ? 2 : x <= GetNumber(inputs[kTreeThresholds], node) ? 0 : 1;
      node = inputs[kTreeChildren].ints[static_cast<size_t>(node * 3 + which)];
    }
    out.ints[static_cast<size_t>(flat)] = node < 0 ? -1 - node : 0;
  });
  return OneReference(std::move(out));
}

Statements DefineTreeLeaves(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const DataType index = DataType::Int(64);
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const PrimExpr last_node = inputs[kTreeFeatures]->shape[0] - one;
  const PrimExpr last_column = inputs[kTreeData]->shape[1] - one;
  const PrimExpr depth = ir::Int64(args.call()->attrs.GetInt("depth"));
  const Buffer node = ir::MakeBuffer("node", index, {one}, "local");
  const Buffer step = ir::MakeBuffer("step", index, {one}, "local");
  const Places first = {zero};
  const auto wide = [&](const PrimExpr& x) { return ir::Cast(index, x); };
  const Stmt nest = SpatialNest(
      "tree_leaves", outputs[0]->shape,
      [&](const Places& i) {
        const Stmt walk = Let("at", ir::Min(Load(node, first), last_node), [&](const PrimExpr& at) {
          const PrimExpr column = ir::Max(ir::Min(wide(Load(inputs[kTreeFeatures], {at})), last_column), zero);
          return Let("x", Load(inputs[kTreeData], {i[0], column}), [&](const PrimExpr& x) {
            const PrimExpr is_yes = x <= Load(inputs[kTreeThresholds], {at});
            const PrimExpr which = ir::Select(is_yes, zero, ir::Select(IsNan(x), ir::Int64(2), one));
            return ir::MakeSeq({Store(node, wide(Load(inputs[kTreeChildren], {at, which})), first),
                                Store(step, Load(step, first) + one, first)});
          });
        });
        const PrimExpr going = ir::And(Load(node, first) >= zero, Load(step, first) < depth);
        const PrimExpr reached = Load(node, first);
        const PrimExpr leaf = ir::Select(reached < zero, ir::Int64(-1) - reached, zero);
        return ir::MakeSeq({Store(node, wide(Load(inputs[kTreeRoots], {i[1]})), first), Store(step, zero, first),
                            While(going, walk), Store(outputs[0], ir::Cast(outputs[0]->dtype, leaf), i)});
      },
      {node, step});
  return {{nest}};
}

double TreeCost(const ir::Call& call, const Target&) {
  return EstimateElements(call->type) * static_cast<double>(call->attrs.GetInt("depth"));
}

}  // namespace

std::vector<OpRow> TreeOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "tree_leaves",
                  .summary = "the number of the leaf of each decision tree that each row reaches",
                  .arg_names = {"data", "features", "thresholds", "children", "roots"},
                  .attrs = {{"depth", AttrType::kInt, {}, true}},
                  .infer = InferTreeLeaves,
                  .reference = ReferenceTreeLeaves,
                  .implementations = {{"walk", Always, TreeCost, {}, BuildStatements<DefineTreeLeaves>}},
                  .cases = {.rank0 = false, .dtypes = {DataType::Float(32), DataType::Float(64)}}});
  return rows;
}

}  // namespace ingot::op
