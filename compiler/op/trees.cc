// Decision trees: the leaf of each tree that each row of features reaches.
#include <algorithm>
#include <cmath>
#include <functional>

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

// Several trees of a row are walked at a time: each step of a walk waits for the loads of the one before. A walk that has
// reached its leaf stays there until the others have.
constexpr int64_t kWalks = 8;

Statements DefineTreeLeaves(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const DataType index = DataType::Int(64);
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  const PrimExpr last_node = inputs[kTreeFeatures]->shape[0] - one;
  const PrimExpr last_column = inputs[kTreeData]->shape[1] - one;
  const PrimExpr depth = ir::Int64(args.call()->attrs.GetInt("depth"));
  const PrimExpr rows = outputs[0]->shape[0], trees = outputs[0]->shape[1];
  const int64_t walks = std::clamp<int64_t>(ir::AsConstInt(trees).value_or(kWalks), 1, kWalks);
  const Buffer nodes = ir::MakeBuffer("node", index, {ir::Int64(walks)}, "local");
  const Buffer step = ir::MakeBuffer("step", index, {one}, "local");
  const Places first = {zero};
  const auto wide = [&](const PrimExpr& x) { return ir::Cast(index, x); };
  const auto for_walks = [&](const std::function<Stmt(const Places& walk)>& body) {
    std::vector<Stmt> stmts;
    for (int64_t walk = 0; walk < walks; ++walk) stmts.push_back(body({ir::Int64(walk)}));
    return ir::MakeSeq(std::move(stmts));
  };
  const Stmt nest = SpatialNest(
      "tree_leaves", {rows, SimplifyDim(ir::FloorDiv(trees + (walks - 1), ir::Int64(walks)))},
      [&](const Places& i) {
        const auto tree_of = [&](const Places& walk) { return i[1] * walks + walk[0]; };
        const Stmt start = for_walks([&](const Places& walk) {
          return Store(nodes, wide(Load(inputs[kTreeRoots], {ir::Min(tree_of(walk), trees - one)})), walk);
        });
        const Stmt onward = for_walks([&](const Places& walk) {
          const PrimExpr node = Load(nodes, walk);
          return Let("at", ir::Max(ir::Min(node, last_node), zero), [&](const PrimExpr& at) {
            const PrimExpr column = ir::Max(ir::Min(wide(Load(inputs[kTreeFeatures], {at})), last_column), zero);
            return Let("x", Load(inputs[kTreeData], {i[0], column}), [&](const PrimExpr& x) {
              const PrimExpr is_yes = x <= Load(inputs[kTreeThresholds], {at});
              const PrimExpr which = ir::Select(is_yes, zero, ir::Select(IsNan(x), ir::Int64(2), one));
              const PrimExpr child = wide(Load(inputs[kTreeChildren], {at, which}));
              return Store(nodes, ir::Select(node < zero, node, child), walk);
            });
          });
        });
        const Stmt finish = for_walks([&](const Places& walk) {
          const PrimExpr reached = Load(nodes, walk);
          const PrimExpr leaf = ir::Select(reached < zero, ir::Int64(-1) - reached, zero);
          return If(tree_of(walk) < trees, Store(outputs[0], ir::Cast(outputs[0]->dtype, leaf), {i[0], tree_of(walk)}));
        });
        PrimExpr latest = Load(nodes, first);
        for (int64_t walk = 1; walk < walks; ++walk) latest = ir::Max(latest, Load(nodes, {ir::Int64(walk)}));
        const PrimExpr going = ir::And(latest >= zero, Load(step, first) < depth);
        return ir::MakeSeq({start, Store(step, zero, first),
                            While(going, ir::MakeSeq({onward, Store(step, Load(step, first) + one, first)})), finish});
      },
      {nodes, step});
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
