// Ensembles of decision trees. Their nodes become those of the operator tree_leaves, which asks x <= threshold alone:
// every other mode is that with other children, another threshold or a second node. The leaves' weights are summed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/ml.h"

namespace ingot::importer {
namespace {

// Nodes of all trees; a child below 0 is the leaf -1 - child.
struct Forest {
  DataType dtype = DataType::Float(32);            // of features, thresholds and weights: or float64
  std::vector<int32_t> features, children, roots;  // children: of x <= threshold, of x > threshold, of NaN
  std::vector<double> thresholds;
  std::map<std::pair<int64_t, int64_t>, int32_t> leaves;  // by tree and node
  int64_t depth = 0;
  int64_t columns = 0;  // the features that nodes read lie before this one

  int32_t Add(int64_t feature, double threshold, int32_t yes, int32_t no, bool nan_is_yes) {
    features.push_back(static_cast<int32_t>(feature));
    thresholds.push_back(threshold);
    children.insert(children.end(), {yes, no, nan_is_yes ? yes : no});
    return static_cast<int32_t>(features.size()) - 1;
  }
  void Set(int32_t node, double threshold, int32_t yes, int32_t no, bool nan_is_yes) {
    thresholds[static_cast<size_t>(node)] = threshold;
    int32_t* own = &children[3 * static_cast<size_t>(node)];
    own[0] = yes, own[1] = no, own[2] = nan_is_yes ? yes : no;
  }
};

// The greatest number of the features' dtype below v; nothing is <= NaN.
double Below(const Forest& forest, double v) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (v == -infinity) return std::numeric_limits<double>::quiet_NaN();
  if (forest.dtype == DataType::Float(64)) return std::nextafter(v, -infinity);
  return std::nextafter(static_cast<float>(v), -std::numeric_limits<float>::infinity());
}

// Makes the node ask `x mode v`, which is its place `at` in the forest; false for an unknown mode.
bool SetTest(Forest& forest, int32_t at, const std::string& mode, double v, int32_t yes, int32_t no, bool nan_is_yes) {
  if (mode == "BRANCH_LEQ") {
    forest.Set(at, v, yes, no, nan_is_yes);
  } else if (mode == "BRANCH_LT") {
    forest.Set(at, Below(forest, v), yes, no, nan_is_yes);
  } else if (mode == "BRANCH_GT") {
    forest.Set(at, v, no, yes, !nan_is_yes);
  } else if (mode == "BRANCH_GTE") {
    forest.Set(at, Below(forest, v), no, yes, !nan_is_yes);
  } else if (mode == "BRANCH_EQ" || mode == "BRANCH_NEQ") {
    if (mode == "BRANCH_NEQ") {
      std::swap(yes, no);
      nan_is_yes = false;  // NaN is unlike every number
    }
    const int32_t second = forest.Add(forest.features[static_cast<size_t>(at)], Below(forest, v), no, yes, false);
    forest.Set(at, v, second, no, nan_is_yes);
  } else {
    return false;
  }
  return true;
}

// Finds the longest way from a node to a leaf; an error if nodes form a cycle.
Status FindDepth(const NodeImporter& node, Forest& forest) {
  constexpr int64_t kUnseen = -1, kOpen = -2;
  std::vector<int64_t> depths(forest.features.size(), kUnseen);
  for (size_t first = 0; first < depths.size(); ++first) {
    std::vector<size_t> way = {first};
    while (!way.empty()) {
      const size_t at = way.back();
      const bool is_first_visit = depths[at] == kUnseen;
      if (!is_first_visit && depths[at] != kOpen) {
        way.pop_back();
        continue;
      }
      depths[at] = kOpen;
      int64_t below = 0;
      bool is_ready = true;
      for (size_t i = 0; i < 2; ++i) {
        const int32_t child = forest.children[3 * at + i];
        if (child < 0) continue;
        const int64_t depth = depths[static_cast<size_t>(child)];
        if (depth == kOpen) return node.Invalid("the nodes of a tree form a cycle");
        if (depth == kUnseen) {
          way.push_back(static_cast<size_t>(child));
          is_ready = false;
          break;
        }
        below = std::max(below, depth);
      }
      if (!is_ready) continue;
      depths[at] = below + 1;
      forest.depth = std::max(forest.depth, below + 1);
      way.pop_back();
    }
  }
  return Status();
}

// The attributes nodes_* of ai.onnx.ml 1 to 4, one element per node.
struct NodeAttributes {
  std::vector<int64_t> trees, ids, features, yes, no, nan_is_yes;
  std::vector<double> values;
  std::vector<std::string> modes;
};

Result<NodeAttributes> ReadNodes(const NodeImporter& node, DataType dtype) {
  NodeAttributes nodes;
  INGOT_ASSIGN_OR_RETURN(nodes.trees, node.Ints("nodes_treeids", {}));
  const auto count = static_cast<int64_t>(nodes.trees.size());
  if (count == 0) return node.Invalid("an ensemble without nodes");
  INGOT_ASSIGN_OR_RETURN(nodes.ids, node.Ints("nodes_nodeids", {}, count));
  INGOT_ASSIGN_OR_RETURN(nodes.features, node.Ints("nodes_featureids", {}, count));
  INGOT_ASSIGN_OR_RETURN(nodes.yes, node.Ints("nodes_truenodeids", {}, count));
  INGOT_ASSIGN_OR_RETURN(nodes.no, node.Ints("nodes_falsenodeids", {}, count));
  INGOT_ASSIGN_OR_RETURN(nodes.nan_is_yes, node.Ints("nodes_missing_value_tracks_true", {}));
  if (nodes.nan_is_yes.empty()) nodes.nan_is_yes.resize(nodes.trees.size(), 0);
  INGOT_ASSIGN_OR_RETURN(nodes.values, DoublesOf(node, "nodes_values", dtype));
  const OnnxAttribute* modes = node.FindAttr("nodes_modes");
  const auto* names = modes != nullptr ? std::get_if<std::vector<std::string>>(&modes->value) : nullptr;
  if (names == nullptr) return node.Invalid("attribute \"nodes_modes\": expected strings");
  nodes.modes = *names;
  INGOT_RETURN_IF_ERROR(CheckLength(node, "nodes_values", nodes.values.size(), nodes.trees.size()));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "nodes_modes", nodes.modes.size(), nodes.trees.size()));
  INGOT_RETURN_IF_ERROR(
      CheckLength(node, "nodes_missing_value_tracks_true", nodes.nan_is_yes.size(), nodes.trees.size()));
  for (size_t i = 0; i < nodes.trees.size(); ++i) {
    const int64_t feature = nodes.features[i];
    if (nodes.modes[i] != "LEAF" && (feature < 0 || feature > std::numeric_limits<int32_t>::max())) {
      return node.Invalid("a node reads the feature " + std::to_string(feature));
    }
  }
  return nodes;
}

// Adds the roots: the node of each tree that is nobody's child, in the order of the trees' first nodes.
Status AddRoots(const NodeImporter& node, const NodeAttributes& nodes, const std::vector<int32_t>& places,
                const std::set<std::pair<int64_t, int64_t>>& inner, Forest& forest) {
  std::set<int64_t> trees, with_root;
  for (size_t i = 0; i < nodes.trees.size(); ++i) {
    trees.insert(nodes.trees[i]);
    if (inner.contains({nodes.trees[i], nodes.ids[i]})) continue;
    if (!with_root.insert(nodes.trees[i]).second) {
      return node.Invalid("the tree " + std::to_string(nodes.trees[i]) + " has more than one root");
    }
    forest.roots.push_back(places[i]);
  }
  if (with_root.size() != trees.size()) return node.Invalid("a tree without a root: its nodes form a cycle");
  return Status();
}

// The dtype that trees compute in: float64 for features of float64, float32 for all others.
Result<DataType> DTypeOfTrees(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  return *type->dtype == DataType::Float(64) ? DataType::Float(64) : DataType::Float(32);
}

Result<Forest> ReadForest(const NodeImporter& node) {
  Forest forest;
  INGOT_ASSIGN_OR_RETURN(forest.dtype, DTypeOfTrees(node));
  INGOT_ASSIGN_OR_RETURN(const NodeAttributes nodes, ReadNodes(node, forest.dtype));
  std::map<std::pair<int64_t, int64_t>, int32_t> by_id;
  std::vector<int32_t> places;
  for (size_t i = 0; i < nodes.trees.size(); ++i) {
    const std::pair key(nodes.trees[i], nodes.ids[i]);
    const bool is_leaf = nodes.modes[i] == "LEAF";
    const auto leaf = static_cast<int32_t>(forest.leaves.size());
    places.push_back(is_leaf ? -1 - leaf : forest.Add(nodes.features[i], 0, -1, -1, false));
    if (is_leaf) forest.leaves[key] = leaf;
    if (!is_leaf) forest.columns = std::max(forest.columns, nodes.features[i] + 1);
    if (!by_id.emplace(key, places.back()).second) {
      return node.Invalid("two nodes " + std::to_string(key.second) + " in the tree " + std::to_string(key.first));
    }
  }
  std::set<std::pair<int64_t, int64_t>> inner;
  for (size_t i = 0; i < nodes.trees.size(); ++i) {
    if (places[i] < 0) continue;
    int32_t children[2];
    for (const int64_t id : {nodes.yes[i], nodes.no[i]}) {
      const auto child = by_id.find({nodes.trees[i], id});
      if (child == by_id.end()) {
        return node.Invalid("a node's child " + std::to_string(id) + " is not in the tree " +
                            std::to_string(nodes.trees[i]));
      }
      children[id == nodes.yes[i] ? 0 : 1] = child->second;
      inner.insert(child->first);
    }
    if (nodes.yes[i] == nodes.no[i]) children[1] = children[0];
    if (!SetTest(forest, places[i], nodes.modes[i], nodes.values[i], children[0], children[1],
                 nodes.nan_is_yes[i] != 0)) {
      return node.Unsupported("nodes of the mode \"" + nodes.modes[i] + "\"");
    }
  }
  INGOT_RETURN_IF_ERROR(AddRoots(node, nodes, places, inner, forest));
  INGOT_RETURN_IF_ERROR(FindDepth(node, forest));
  if (forest.features.empty()) forest.Add(0, 0, -1, -1, false);  // all roots are leaves; nothing reads it
  return forest;
}

// The weights of leaves, as the attributes with this prefix ("class" or "target") say them.
struct LeafWeights {
  std::vector<double> values;  // [leaves, width]
  std::vector<bool> is_given;
  std::set<int64_t> ids;
  bool is_positive = true;  // all of them
};
Result<LeafWeights> ReadLeafWeights(const NodeImporter& node, const Forest& forest, const std::string& prefix,
                                    int64_t width) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> trees, node.Ints(prefix + "_treeids", {}));
  const auto count = static_cast<int64_t>(trees.size());
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> nodes, node.Ints(prefix + "_nodeids", {}, count));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, node.Ints(prefix + "_ids", {}, count));
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> given, DoublesOf(node, prefix + "_weights", forest.dtype));
  INGOT_RETURN_IF_ERROR(CheckLength(node, prefix + "_weights", given.size(), trees.size()));
  LeafWeights weights;
  const size_t size = forest.leaves.size() * static_cast<size_t>(width);
  weights.values.resize(size, 0);
  weights.is_given.resize(size, false);
  for (size_t i = 0; i < trees.size(); ++i) {
    const auto leaf = forest.leaves.find({trees[i], nodes[i]});
    if (leaf == forest.leaves.end()) {
      return node.Invalid("a weight of the node " + std::to_string(nodes[i]) + " of the tree " +
                          std::to_string(trees[i]) + ", which is no leaf");
    }
    if (ids[i] < 0 || ids[i] >= width) {
      return node.Invalid("attribute \"" + prefix + "_ids\": " + std::to_string(ids[i]) + " of " +
                          std::to_string(width));
    }
    const size_t at = static_cast<size_t>(leaf->second * width + ids[i]);
    weights.values[at] += given[i];
    weights.is_given[at] = true;
    weights.ids.insert(ids[i]);
    weights.is_positive &= given[i] >= 0;
  }
  return weights;
}

// The leaves that rows reach. Behind all other nodes the operator has the leaves, which are their own children.
Result<Expr> LeavesOf(const NodeImporter& node, const Expr& x, Forest forest) {
  const DataType index = DataType::Int(32);
  const auto inner = static_cast<int64_t>(forest.features.size());
  int32_t lowest = -1;
  for (const std::vector<int32_t>* places : {&forest.children, &forest.roots}) {
    for (const int32_t place : *places) lowest = std::min(lowest, place);
  }
  const int64_t nodes = inner - lowest;
  if (nodes > std::numeric_limits<int32_t>::max() / 3) return node.Unsupported("more than 2^29 nodes");
  for (std::vector<int32_t>* places : {&forest.children, &forest.roots}) {
    for (int32_t& place : *places) place = place < 0 ? static_cast<int32_t>(inner - 1 - place) : place;
  }
  for (int64_t leaf = inner; leaf < nodes; ++leaf) {
    const auto own = static_cast<int32_t>(leaf);
    forest.Add(0, 0, own, own, false);
  }
  return node.Bind(
      "tree_leaves",
      {x, ConstantOf(index, {nodes}, forest.features), NumberConstant(forest.dtype, forest.thresholds, {nodes}),
       ConstantOf(index, {nodes, 3}, forest.children),
       ConstantOf(index, {static_cast<int64_t>(forest.roots.size())}, forest.roots)},
      {{"depth", forest.depth}, {"inner", inner}});
}

// Joins the weights [n, trees, width] of the leaves that rows reach.
Result<Expr> Joined(const NodeImporter& node, const Forest& forest, const Expr& leaves,
                    const std::vector<double>& weights, int64_t width, const char* row) {
  const Expr table = NumberConstant(forest.dtype, weights, {std::ssize(weights) / width, width});
  INGOT_ASSIGN_OR_RETURN(const Expr reached, node.Bind("take", {table, leaves}, {{"axis", int64_t{0}}}));
  return node.Bind(row, {reached}, {{"axis", AttrValue::Ints({1})}});
}

Result<Expr> WithBase(const NodeImporter& node, Expr scores, const std::vector<double>& base) {
  if (base.empty()) return scores;
  const DataType dtype = DTypeOf(scores);
  return node.Bind("add", {std::move(scores), NumberConstant(dtype, base, {std::ssize(base)})});
}

// The features. Where only run time knows their number, the ones that nodes read are cut out, and that there are as
// many is checked there.
Result<Expr> InputOfTrees(const NodeImporter& node, const Forest& forest) {
  INGOT_ASSIGN_OR_RETURN(Expr x, Rows(node, 0, forest.dtype));
  const std::optional<int64_t> known = ir::AsConstInt(DimsOf(x)[1]);
  if (known && *known < forest.columns) {
    return node.Invalid("a node reads the feature " + std::to_string(forest.columns - 1) + " of " +
                        std::to_string(*known));
  }
  if (known || forest.columns == 0) return x;
  const auto list = [](int64_t v) { return PrimTuple({ir::Int64(v)}); };
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("strided_slice", {std::move(x), list(1), list(0), list(forest.columns)}));
  return WithColumns(node, std::move(x), forest.columns);
}

// The weights of the leaves that rows reach, joined over the trees: [n, targets].
Result<Expr> Aggregated(const NodeImporter& node, const Expr& x, const Forest& forest, LeafWeights weights,
                        int64_t targets, const std::string& aggregate) {
  const bool is_extreme = aggregate == "MIN" || aggregate == "MAX";
  if (!is_extreme && aggregate != "SUM" && aggregate != "AVERAGE") {
    return node.Unsupported("aggregate_function \"" + aggregate + "\"");
  }
  if (is_extreme && std::ranges::count(weights.is_given, false) != 0) {
    return node.Unsupported("aggregate_function \"" + aggregate + "\" of leaves without a weight for each target");
  }
  if (aggregate == "AVERAGE") {
    for (double& weight : weights.values) weight /= static_cast<double>(forest.roots.size());
  }
  INGOT_ASSIGN_OR_RETURN(const Expr leaves, LeavesOf(node, x, forest));
  const char* row = aggregate == "MIN" ? "min" : aggregate == "MAX" ? "max" : "sum";
  return Joined(node, forest, leaves, weights.values, targets, row);
}

Outputs TreeEnsembleRegressor(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const int64_t targets, node.Int("n_targets", 1));
  INGOT_ASSIGN_OR_RETURN(const std::string aggregate, node.String("aggregate_function", "SUM"));
  if (targets < 1 || targets > 1 << 20) return node.Invalid("n_targets is " + std::to_string(targets));
  INGOT_ASSIGN_OR_RETURN(const Forest forest, ReadForest(node));
  INGOT_ASSIGN_OR_RETURN(const Expr x, InputOfTrees(node, forest));
  INGOT_ASSIGN_OR_RETURN(LeafWeights weights, ReadLeafWeights(node, forest, "target", targets));
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> base, DoublesOf(node, "base_values", forest.dtype));
  if (!base.empty()) {
    INGOT_RETURN_IF_ERROR(CheckLength(node, "base_values", base.size(), static_cast<size_t>(targets)));
  }
  INGOT_ASSIGN_OR_RETURN(Expr scores, Aggregated(node, x, forest, std::move(weights), targets, aggregate));
  INGOT_ASSIGN_OR_RETURN(scores, WithBase(node, std::move(scores), base));
  INGOT_ASSIGN_OR_RETURN(scores, CastTo(node, std::move(scores), DataType::Float(32)));
  return One(PostTransform(node, std::move(scores)));
}

// ---- TreeEnsemble of ai.onnx.ml 5: children and roots are places in lists of branches and of leaves

// Attributes of branches, and of leaves, one element for each.
struct EnsembleAttributes {
  std::vector<int64_t> roots, features, yes, no, yes_is_leaf, no_is_leaf, nan_is_yes, targets;
  std::vector<double> splits, weights, members;
  std::vector<uint8_t> modes;
};
Result<EnsembleAttributes> ReadEnsemble(const NodeImporter& node, DataType dtype) {
  EnsembleAttributes a;
  INGOT_ASSIGN_OR_RETURN(a.features, node.Ints("nodes_featureids", {}));
  INGOT_ASSIGN_OR_RETURN(a.targets, node.Ints("leaf_targetids", {}));
  INGOT_ASSIGN_OR_RETURN(a.roots, node.Ints("tree_roots", {}));
  const auto count = std::ssize(a.features);
  if (count == 0 || a.targets.empty() || a.roots.empty()) return node.Invalid("an ensemble without nodes or leaves");
  INGOT_ASSIGN_OR_RETURN(a.yes, node.Ints("nodes_truenodeids", {}, count));
  INGOT_ASSIGN_OR_RETURN(a.no, node.Ints("nodes_falsenodeids", {}, count));
  INGOT_ASSIGN_OR_RETURN(a.yes_is_leaf, node.Ints("nodes_trueleafs", {}, count));
  INGOT_ASSIGN_OR_RETURN(a.no_is_leaf, node.Ints("nodes_falseleafs", {}, count));
  INGOT_ASSIGN_OR_RETURN(a.nan_is_yes, node.Ints("nodes_missing_value_tracks_true", {}));
  if (a.nan_is_yes.empty()) a.nan_is_yes.resize(a.features.size(), 0);
  INGOT_ASSIGN_OR_RETURN(a.splits, TensorNumbers(node, "nodes_splits", dtype));
  INGOT_ASSIGN_OR_RETURN(a.modes, VectorOf<uint8_t>(node, "nodes_modes", DataType::UInt(8)));
  INGOT_ASSIGN_OR_RETURN(a.weights, TensorNumbers(node, "leaf_weights", dtype));
  INGOT_ASSIGN_OR_RETURN(a.members, TensorNumbers(node, "membership_values", dtype));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "nodes_splits", a.splits.size(), a.features.size()));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "nodes_modes", a.modes.size(), a.features.size()));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "nodes_missing_value_tracks_true", a.nan_is_yes.size(), a.features.size()));
  INGOT_RETURN_IF_ERROR(CheckLength(node, "leaf_weights", a.weights.size(), a.targets.size()));
  return a;
}

Result<int32_t> ChildAt(const NodeImporter& node, const EnsembleAttributes& a, int64_t place, bool is_leaf) {
  const auto size = is_leaf ? std::ssize(a.targets) : std::ssize(a.features);
  if (place < 0 || place >= size) {
    return node.Invalid("a child is the " + std::string(is_leaf ? "leaf " : "node ") + std::to_string(place) + " of " +
                        std::to_string(size));
  }
  return static_cast<int32_t>(is_leaf ? -1 - place : place);
}

// Makes the node ask for one member after the other; NaN goes as the first one says.
void SetMembers(Forest& forest, int32_t at, std::span<const double> members, int32_t yes, int32_t no, bool nan_is_yes) {
  if (members.empty()) forest.Set(at, std::numeric_limits<double>::quiet_NaN(), yes, no, nan_is_yes);
  for (size_t i = 0; i < members.size(); ++i) {
    const int64_t feature = forest.features[static_cast<size_t>(at)];
    const int32_t next = i + 1 < members.size() ? forest.Add(feature, 0, no, no, false) : no;
    SetTest(forest, at, "BRANCH_EQ", members[i], yes, next, nan_is_yes);
    at = next;
  }
}

Result<Forest> ForestOf(const NodeImporter& node, DataType dtype, const EnsembleAttributes& a) {
  static constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                           "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  constexpr uint8_t kMember = std::size(kModes);
  Forest forest;
  forest.dtype = dtype;
  for (const int64_t feature : a.features) {
    if (feature < 0 || feature > std::numeric_limits<int32_t>::max()) {
      return node.Invalid("a node reads the feature " + std::to_string(feature));
    }
    forest.columns = std::max(forest.columns, feature + 1);
    forest.Add(feature, 0, -1, -1, false);
  }
  auto member = a.members.begin();
  for (size_t i = 0; i < a.features.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    const bool nan_is_yes = a.nan_is_yes[i] != 0;
    INGOT_ASSIGN_OR_RETURN(const int32_t yes, ChildAt(node, a, a.yes[i], a.yes_is_leaf[i] != 0));
    INGOT_ASSIGN_OR_RETURN(const int32_t no, ChildAt(node, a, a.no[i], a.no_is_leaf[i] != 0));
    if (a.modes[i] > kMember) return node.Unsupported("nodes of the mode " + std::to_string(a.modes[i]));
    if (a.modes[i] < kMember) {
      SetTest(forest, at, kModes[a.modes[i]], a.splits[i], yes, no, nan_is_yes);
      continue;
    }
    if (member == a.members.end()) return node.Invalid("membership_values: expected a list for each node of members");
    const auto end = std::find_if(member, a.members.end(), [](double v) { return std::isnan(v); });
    SetMembers(forest, at, {member, end}, yes, no, nan_is_yes);
    member = end == a.members.end() ? end : end + 1;
  }
  for (const int64_t root : a.roots) {
    INGOT_ASSIGN_OR_RETURN(const int32_t place, ChildAt(node, a, root, false));
    forest.roots.push_back(place);
  }
  INGOT_RETURN_IF_ERROR(FindDepth(node, forest));
  return forest;
}

Outputs TreeEnsemble(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const int64_t targets, node.Int("n_targets", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t aggregate, node.Int("aggregate_function", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t post, node.Int("post_transform", 0));
  static constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  static constexpr const char* kPosts[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (targets < 1 || targets > 1 << 20) return node.Invalid("n_targets is " + std::to_string(targets));
  if (aggregate < 0 || aggregate >= std::ssize(kAggregates) || post < 0 || post >= std::ssize(kPosts)) {
    return node.Invalid("aggregate_function or post_transform is out of range");
  }
  INGOT_ASSIGN_OR_RETURN(const DataType dtype, DTypeOfTrees(node));
  INGOT_ASSIGN_OR_RETURN(const EnsembleAttributes a, ReadEnsemble(node, dtype));
  INGOT_ASSIGN_OR_RETURN(const Forest forest, ForestOf(node, dtype, a));
  INGOT_ASSIGN_OR_RETURN(const Expr x, InputOfTrees(node, forest));
  LeafWeights weights;
  weights.values.resize(a.targets.size() * static_cast<size_t>(targets), 0);
  weights.is_given.resize(weights.values.size(), false);
  for (size_t leaf = 0; leaf < a.targets.size(); ++leaf) {
    if (a.targets[leaf] < 0 || a.targets[leaf] >= targets) {
      return node.Invalid("attribute \"leaf_targetids\": " + std::to_string(a.targets[leaf]) + " of " +
                          std::to_string(targets));
    }
    const size_t at = leaf * static_cast<size_t>(targets) + static_cast<size_t>(a.targets[leaf]);
    weights.values[at] = a.weights[leaf];
    weights.is_given[at] = true;
  }
  INGOT_ASSIGN_OR_RETURN(Expr scores, Aggregated(node, x, forest, std::move(weights), targets, kAggregates[aggregate]));
  return One(PostTransformNamed(node, kPosts[post], std::move(scores)));
}

// Two classes, of which the leaves know one: its score decides. The scores of the second class alone stand beside 0;
// those that are named the first one's are the second one's, too, and the first class has what is left.
Outputs OneScore(const NodeImporter& node, const Expr& score, bool is_positive, bool is_second_given,
                 const std::vector<int64_t>& labels) {
  INGOT_ASSIGN_OR_RETURN(const std::string name, node.String("post_transform", "NONE"));
  if (name != "NONE" && name != "LOGISTIC") {
    return node.Unsupported("post_transform \"" + name + "\" of one score for two classes");
  }
  INGOT_ASSIGN_OR_RETURN(const Expr limit, node.Scalar(is_positive ? 0.5 : 0, DTypeOf(score)));
  INGOT_ASSIGN_OR_RETURN(Expr is_second, node.Bind("greater", {score, limit}));
  INGOT_ASSIGN_OR_RETURN(is_second, node.Bind("astype", {is_second}, {{"dtype", DataType::Int(64)}}));
  INGOT_ASSIGN_OR_RETURN(is_second, node.Bind("reshape", {is_second, ShapeOf({DimsOf(score)[0]})}));
  INGOT_ASSIGN_OR_RETURN(const Expr label, LabelsOf(node, labels, is_second));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DTypeOf(score)));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, DTypeOf(score)));
  Expr first;
  if (is_second_given) {
    INGOT_ASSIGN_OR_RETURN(first, node.Bind("multiply", {score, zero}));
  } else {
    INGOT_ASSIGN_OR_RETURN(first, node.Bind("subtract", {is_positive && name == "NONE" ? one : zero, score}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr scores, Beside(node, first, score));
  INGOT_ASSIGN_OR_RETURN(scores, CastTo(node, std::move(scores), DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(scores, PostTransform(node, std::move(scores)));
  return std::vector<Expr>{label, scores};
}

Outputs TreeEnsembleClassifier(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> labels, ClassLabels(node, "classlabels_int64s"));
  const auto classes = static_cast<int64_t>(labels.size());
  if (classes < 2) return node.Unsupported("less than two classes");
  INGOT_ASSIGN_OR_RETURN(const Forest forest, ReadForest(node));
  INGOT_ASSIGN_OR_RETURN(const Expr x, InputOfTrees(node, forest));
  INGOT_ASSIGN_OR_RETURN(LeafWeights weights, ReadLeafWeights(node, forest, "class", classes));
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> base, DoublesOf(node, "base_values", forest.dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr leaves, LeavesOf(node, x, forest));
  if (classes == 2 && weights.ids.size() == 1) {
    const auto known = static_cast<size_t>(*weights.ids.begin());
    std::vector<double> own;
    for (size_t i = known; i < weights.values.size(); i += 2) own.push_back(weights.values[i]);
    if (known != 0 && !base.empty()) return node.Unsupported("base_values beside weights of the second class alone");
    if (base.size() > 1) return node.Unsupported("two base_values for one score");
    INGOT_ASSIGN_OR_RETURN(Expr score, Joined(node, forest, leaves, own, 1, "sum"));
    INGOT_ASSIGN_OR_RETURN(score, WithBase(node, std::move(score), base));
    return OneScore(node, score, weights.is_positive, known == 1, labels);
  }
  if (!base.empty()) {
    INGOT_RETURN_IF_ERROR(CheckLength(node, "base_values", base.size(), labels.size()));
  }
  INGOT_ASSIGN_OR_RETURN(Expr scores, Joined(node, forest, leaves, weights.values, classes, "sum"));
  INGOT_ASSIGN_OR_RETURN(scores, WithBase(node, std::move(scores), base));
  INGOT_ASSIGN_OR_RETURN(const Expr best, BestClass(node, scores));
  INGOT_ASSIGN_OR_RETURN(const Expr label, LabelsOf(node, labels, best));
  INGOT_ASSIGN_OR_RETURN(scores, CastTo(node, std::move(scores), DataType::Float(32)));
  INGOT_ASSIGN_OR_RETURN(scores, PostTransform(node, std::move(scores)));
  return std::vector<Expr>{label, scores};
}

constexpr OnnxOpRow kTreeRows[] = {
    {"TreeEnsemble", nullptr, TreeEnsemble, kMachineLearning},
    {"TreeEnsembleClassifier", nullptr, TreeEnsembleClassifier, kMachineLearning},
    {"TreeEnsembleRegressor", nullptr, TreeEnsembleRegressor, kMachineLearning},
};

}  // namespace

std::span<const OnnxOpRow> TreeOnnxOps() { return kTreeRows; }

}  // namespace ingot::importer
