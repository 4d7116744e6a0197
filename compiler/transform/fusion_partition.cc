// Fusion by post-dominators (as in Relay and Relax, after "TVM", OSDI 2018). The immediate post-dominator of a node is
// the first later node through which everything computed from it passes. Merging a node, its post-dominator and all
// nodes between them gives a group of which only the last node is read outside. A node asks for that merge if its class
// and the classes on the way allow it:
//   out-fusible    with elementwise readers, as an epilogue; everything on the way is elementwise or broadcast
//   elementwise,   into anything injective, into a reduction, or into the epilogue of an out-fusible one
//   broadcast
//   injective      into injective ones, once the epilogues have been taken
//   reduction      asks for nothing
// Groups carry a class: that of their last node, raised by an out-fusible member, so that no group gets two such
// members.
//
// Post-dominators are found backwards in one pass, as lowest common ancestors of the readers in the tree so far. A walk
// that is longer than a group may be is given up, which keeps the whole linear.
#include "compiler/transform/fusion_partition.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace ingot::transform {

using op::FusionClass;

namespace {

constexpr int32_t kNone = -1;

struct PostDominator {
  int32_t parent = kNone;                        // kNone: no node post-dominates it
  int32_t depth = 0;                             // depth in the tree; a root has 1
  FusionClass path = FusionClass::kElementwise;  // the most rigid reading on the way to the parent
};

std::vector<PostDominator> FindPostDominators(const std::vector<FusionNode>& nodes, int32_t max_group) {
  std::vector<PostDominator> tree(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    const FusionNode& node = nodes[i];
    PostDominator& entry = tree[i];
    entry.depth = 1;
    if (node.is_visible || node.readers.empty()) continue;
    int32_t common = node.readers[0].node;
    FusionClass path = node.readers[0].fusion;
    int32_t steps = 0;
    for (size_t r = 1; r < node.readers.size() && common != kNone; ++r) {
      int32_t other = node.readers[r].node;
      path = std::max(path, node.readers[r].fusion);
      while (common != other && common != kNone && other != kNone && ++steps <= max_group) {
        int32_t& deeper = tree[common].depth >= tree[other].depth ? common : other;
        path = std::max(path, tree[deeper].path);
        deeper = tree[deeper].parent;
      }
      if (common != other) common = kNone;
    }
    if (common == kNone) continue;
    entry = {common, tree[common].depth + 1, path};
  }
  return tree;
}

class Partition {
 public:
  Partition(const std::vector<FusionNode>& nodes, int32_t max_group)
      : nodes_(nodes),
        max_group_(max_group),
        tree_(FindPostDominators(nodes, max_group)),
        group_(nodes.size()),
        size_(nodes.size(), 1),
        visited_(nodes.size(), 0) {
    std::iota(group_.begin(), group_.end(), 0);
    for (const FusionNode& node : nodes) {
      class_.push_back(node.fusion);
      inputs_.push_back(node.num_inputs);
    }
  }

  std::vector<int32_t> Run() {
    for (bool injective : {false, true}) {
      for (size_t i = 0; i < nodes_.size(); ++i) Visit(static_cast<int32_t>(i), injective);
    }
    std::vector<int32_t> last(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) last[i] = Find(static_cast<int32_t>(i));
    return last;
  }

 private:
  using Condition = bool (*)(FusionClass group, bool is_sink);

  // Returns the last node of the group, which represents it.
  int32_t Find(int32_t node) {
    while (group_[node] != node) {
      group_[node] = group_[group_[node]];
      node = group_[node];
    }
    return node;
  }

  void Visit(int32_t node, bool injective_phase) {
    const auto [sink, depth, path] = tree_[node];
    if (sink == kNone || Find(node) == Find(sink)) return;
    const FusionClass own = class_[Find(node)];
    if (own == FusionClass::kOutFusible) {
      if (path != FusionClass::kElementwise) return;
      TryMerge(node, sink, [](FusionClass group, bool) { return group <= FusionClass::kBroadcast; });
    } else if (own <= FusionClass::kBroadcast) {
      if (path > FusionClass::kReduction) return;
      TryMerge(node, sink, [](FusionClass group, bool is_sink) {
        return group <= FusionClass::kInjective ||
               (is_sink && (group == FusionClass::kReduction || group == FusionClass::kOutFusible));
      });
    } else if (own == FusionClass::kInjective && injective_phase) {
      if (path > FusionClass::kInjective) return;
      TryMerge(node, sink, [](FusionClass group, bool) { return group <= FusionClass::kInjective; });
    }
  }

  // Merges everything from node to sink, if every group on the way satisfies the condition and the result is small
  // enough.
  void TryMerge(int32_t node, int32_t sink, Condition condition) {
    std::vector<int32_t> between = {node};
    ++visit_;
    visited_[node] = visit_;
    for (size_t i = 0; i < between.size(); ++i) {
      for (const FusionNode::Reader& reader : nodes_[between[i]].readers) {
        if (visited_[reader.node] == visit_) continue;
        visited_[reader.node] = visit_;
        if (!condition(class_[Find(reader.node)], reader.node == sink)) return;
        if (reader.node != sink) between.push_back(reader.node);
        if (std::ssize(between) > max_group_) return;
      }
    }
    const int32_t target = Find(sink);
    std::vector<int32_t> groups;
    int32_t total = size_[target], inputs = inputs_[target];
    for (int32_t member : between) {
      const int32_t group = Find(member);
      if (group == target || std::find(groups.begin(), groups.end(), group) != groups.end()) continue;
      groups.push_back(group);
      total += size_[group];
      inputs += inputs_[group];
    }
    if (total > max_group_ || inputs > kMaxFusionInputs) return;
    for (int32_t group : groups) {
      group_[group] = target;
      if (class_[group] == FusionClass::kOutFusible) class_[target] = FusionClass::kOutFusible;
    }
    size_[target] = total;
    inputs_[target] = inputs;
  }

  const std::vector<FusionNode>& nodes_;
  const int32_t max_group_;
  std::vector<PostDominator> tree_;
  std::vector<int32_t> group_, size_, inputs_;
  std::vector<FusionClass> class_;
  std::vector<int32_t> visited_;  // number of the search that visited the node last
  int32_t visit_ = 0;
};

}  // namespace

std::vector<int32_t> PartitionFusion(const std::vector<FusionNode>& nodes, int32_t max_group) {
  return Partition(nodes, max_group).Run();
}

}  // namespace ingot::transform
