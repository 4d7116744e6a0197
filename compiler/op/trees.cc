// Decision trees: the leaf of each tree that each row of features reaches.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/statements.h"

namespace ingot::op {
namespace {

constexpr size_t kTreeData = 0, kTreeFeatures = 1, kTreeThresholds = 2, kTreeChildren = 3, kTreeRoots = 4;

// ---- tree_leaves: every tree is walked from its root: x <= threshold leads to a node's first child, x > threshold to
// its second, NaN to its third one. The nodes from `inner` on are leaves, at which a walk stays; it gives the number of
// its leaf among them. No walk is longer than `depth`: what is no leaf then counts as the leaf 0. Numbers of nodes and
// features that do not exist are those of the last ones, and below 0 of the first.
Result<ir::Type> InferTreeLeaves(const ir::Call& call) {
  std::vector<ir::TensorType> types;
  for (size_t i = kTreeData; i <= kTreeRoots; ++i) {
    INGOT_ASSIGN_OR_RETURN(const ir::TensorType type, TensorArg(call, i));
    types.push_back(type);
  }
  for (const char* name : {"depth", "inner"}) {
    if (call->attrs.GetInt(name) < 0) return OpError(call, std::string(name) + ": expected an integer >= 0");
  }
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
    const int64_t inner = call->attrs.GetInt("inner");
    int64_t node = std::clamp<int64_t>(inputs[kTreeRoots].ints[static_cast<size_t>(at[1])], 0, nodes - 1);
    for (int64_t step = 0; node < inner && step < call->attrs.GetInt("depth"); ++step) {
      const int64_t column = std::clamp<int64_t>(inputs[kTreeFeatures].ints[static_cast<size_t>(node)], 0, columns - 1);
      const double x = GetNumber(inputs[kTreeData], at[0] * columns + column);
      const int64_t which = std::isnan(x) ? 2 : x <= GetNumber(inputs[kTreeThresholds], node) ? 0 : 1;
      node = std::clamp<int64_t>(inputs[kTreeChildren].ints[static_cast<size_t>(node * 3 + which)], 0, nodes - 1);
    }
    out.ints[static_cast<size_t>(flat)] = std::max<int64_t>(node - inner, 0);
  });
  return OneReference(std::move(out));
}

// What constant operands prove, so that a step of a walk need not ask for it.
struct TreeFacts {
  bool has_columns = false;  // every feature is a column of the data
  bool has_nodes = false;    // every child and root is a node
  bool stays = false;        // every child of a leaf is the leaf itself
  bool nan_goes_on = false;  // NaN leads where every x > threshold does
};
TreeFacts FactsOfTrees(const ir::Call& call) {
  const auto numbers = [&](size_t i) -> std::optional<std::vector<int64_t>> {
    const auto* constant = ir::As<ir::ConstantNode>(call->args[i]);
    if (constant == nullptr || constant->data->dtype() != DataType::Int(32)) return std::nullopt;
    return UnpackReference(constant->data->dtype(), constant->data->dims(), constant->data->bytes()).ints;
  };
  const auto features = numbers(kTreeFeatures), children = numbers(kTreeChildren), roots = numbers(kTreeRoots);
  const auto columns = ir::AsConstInt((*ir::As<ir::TensorTypeNode>(call->args[kTreeData]->type)->dims)[1]);
  TreeFacts facts;
  if (!features || !children || !roots) return facts;
  const auto is_node = [&](int64_t child) { return child >= 0 && child < std::ssize(*features); };
  facts.has_columns =
      columns && std::ranges::all_of(*features, [&](int64_t column) { return column >= 0 && column < *columns; });
  facts.has_nodes = std::ranges::all_of(*children, is_node) && std::ranges::all_of(*roots, is_node);
  facts.nan_goes_on = facts.stays = true;
  const int64_t inner = call->attrs.GetInt("inner");
  for (size_t i = 0; i < children->size(); ++i) {
    const auto node = static_cast<int64_t>(i / 3);
    if (i % 3 == 2) facts.nan_goes_on &= (*children)[i] == (*children)[i - 1];
    if (node >= inner) facts.stays &= (*children)[i] == node;
  }
  return facts;
}

// Several walks go on at a time, since each step of one waits for the loads of the one before: of trees that one row
// takes, or of rows in one tree, which then stays in the first-level cache. A walk that has reached its leaf stays there
// until the others have.
class TreeWalks {
 public:
  static constexpr int64_t kWalks = 8;
  static constexpr int64_t kRows = 64;  // of which the walks of all trees are a task

  TreeWalks(const TeArgs& args, const Buffers& inputs, const Buffers& outputs)
      : inputs_(inputs),
        out_(outputs[0]),
        facts_(FactsOfTrees(args.call())),
        depth_(ir::Int64(args.call()->attrs.GetInt("depth"))),
        inner_(ir::Int64(args.call()->attrs.GetInt("inner"))) {}

  // Of one row after another, some trees at a time.
  Stmt ByTrees() const {
    const int64_t walks = std::clamp<int64_t>(ir::AsConstInt(trees()).value_or(kWalks), 1, kWalks);
    return Nest("tree_leaves", {rows(), Parts(trees(), walks)}, walks, [&](const Places& i, int64_t walk) {
      return Place{i[0], i[1] * walks + walk, ir::BoolImm(true), i[1] * walks + walk < trees()};
    });
  }
  // Of one tree after another, some rows at a time.
  Stmt ByRows() const {
    const Dims extents = {Parts(rows(), kRows), trees(), ir::Int64(kRows / kWalks)};
    return Nest("tree_leaves_of_rows", extents, kWalks, [&](const Places& i, int64_t walk) {
      const PrimExpr row = i[0] * kRows + i[2] * kWalks + walk;
      return Place{row, i[1], row < rows(), ir::BoolImm(true)};
    });
  }
  // How many rows are worth walking a tree for.
  PrimExpr AreFew() const { return rows() < ir::Int64(kWalks); }

 private:
  // The row and the tree of a walk, and whether there are such.
  struct Place {
    PrimExpr row, tree, has_row, has_tree;
  };
  using PlaceOf = std::function<Place(const Places& i, int64_t walk)>;

  const PrimExpr& rows() const { return out_->shape[0]; }
  const PrimExpr& trees() const { return out_->shape[1]; }
  static PrimExpr Parts(const PrimExpr& whole, int64_t part) {
    return SimplifyDim(ir::FloorDiv(whole + (part - 1), ir::Int64(part)));
  }
  static PrimExpr Wide(const PrimExpr& x) { return ir::Cast(DataType::Int(64), x); }

  Stmt Nest(const std::string& name, const Dims& extents, int64_t walks, const PlaceOf& place_of) const {
    const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
    const Buffer nodes = ir::MakeBuffer("node", DataType::Int(64), {ir::Int64(walks)}, "local");
    const Buffer step = ir::MakeBuffer("step", DataType::Int(64), {one}, "local");
    const Places first = {zero};
    return SpatialNest(
        name, extents,
        [&](const Places& i) {
          const auto for_walks = [&](const std::function<Stmt(const Places& walk, const Place& at)>& body) {
            std::vector<Stmt> stmts;
            for (int64_t walk = 0; walk < walks; ++walk) stmts.push_back(body({ir::Int64(walk)}, place_of(i, walk)));
            return ir::MakeSeq(std::move(stmts));
          };
          const Stmt start = for_walks([&](const Places& walk, const Place& at) {
            return Store(nodes, NodeOf(Load(inputs_[kTreeRoots], {ir::Min(at.tree, trees() - one)})), walk);
          });
          const Stmt onward = for_walks(
              [&](const Places& walk, const Place& at) { return Step(nodes, walk, ir::Min(at.row, rows() - one)); });
          const Stmt finish = for_walks([&](const Places& walk, const Place& at) {
            const PrimExpr leaf = ir::Max(Load(nodes, walk) - inner_, zero);
            return If(ir::And(at.has_row, at.has_tree), Store(out_, ir::Cast(out_->dtype, leaf), {at.row, at.tree}));
          });
          PrimExpr least = Load(nodes, first);
          for (int64_t walk = 1; walk < walks; ++walk) least = ir::Min(least, Load(nodes, {ir::Int64(walk)}));
          const PrimExpr going = ir::And(least < inner_, Load(step, first) < depth_);
          const Stmt walk =
              ir::MakeSeq({start, Store(step, zero, first),
                           While(going, ir::MakeSeq({onward, Store(step, Load(step, first) + one, first)})), finish});
          return If(place_of(i, 0).has_row, walk);  // the last task has fewer rows
        },
        {nodes, step});
  }

  // The number of a node that is there.
  PrimExpr NodeOf(const PrimExpr& number) const {
    const PrimExpr wide = Wide(number);
    if (facts_.has_nodes) return wide;
    return ir::Max(ir::Min(wide, inputs_[kTreeFeatures]->shape[0] - ir::Int64(1)), ir::Int64(0));
  }

  Stmt Step(const Buffer& nodes, const Places& walk, const PrimExpr& row) const {
    const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
    const PrimExpr last_column = inputs_[kTreeData]->shape[1] - one;
    return Let("at", Load(nodes, walk), [&](const PrimExpr& at) {
      PrimExpr column = Wide(Load(inputs_[kTreeFeatures], {at}));
      if (!facts_.has_columns) column = ir::Max(ir::Min(column, last_column), zero);
      return Let("x", Load(inputs_[kTreeData], {row, column}), [&](const PrimExpr& x) {
        const PrimExpr is_yes = x <= Load(inputs_[kTreeThresholds], {at});
        const PrimExpr otherwise = facts_.nan_goes_on ? one : ir::Select(IsNan(x), ir::Int64(2), one);
        const PrimExpr child = NodeOf(Load(inputs_[kTreeChildren], {at, ir::Select(is_yes, zero, otherwise)}));
        return Store(nodes, facts_.stays ? child : ir::Select(at >= inner_, at, child), walk);
      });
    });
  }

  const Buffers& inputs_;
  const Buffer out_;
  const TreeFacts facts_;
  const PrimExpr depth_, inner_;
};

Statements DefineTreeLeaves(const TeArgs& args, const Buffers& inputs, const Buffers& outputs) {
  const TreeWalks walks(args, inputs, outputs);
  const PrimExpr are_few = walks.AreFew();
  if (const auto known = ir::AsConstInt(SimplifyDim(are_few))) {
    return {{*known != 0 ? walks.ByTrees() : walks.ByRows()}};
  }
  return {{If(are_few, walks.ByTrees()), If(ir::Not(are_few), walks.ByRows())}};
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
                  .attrs = {{"depth", AttrType::kInt, {}, true}, {"inner", AttrType::kInt, {}, true}},
                  .infer = InferTreeLeaves,
                  .reference = ReferenceTreeLeaves,
                  .implementations = {{"walk", Always, TreeCost, {}, BuildStatements<DefineTreeLeaves>}},
                  .cases = {.rank0 = false, .dtypes = {DataType::Float(32), DataType::Float(64)}}});
  return rows;
}

}  // namespace ingot::op
