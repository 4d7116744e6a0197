#include "compiler/transform/fusion_partition.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

namespace ingot::transform {
namespace {

using op::FusionClass;
constexpr FusionClass kE = FusionClass::kElementwise, kI = FusionClass::kInjective, kR = FusionClass::kReduction,
                      kO = FusionClass::kOutFusible, kX = FusionClass::kOpaque;

// Nodes of the given classes; edges from the first to the second.
std::vector<FusionNode> Graph(std::vector<FusionClass> classes, std::vector<std::pair<int, int>> edges) {
  std::vector<FusionNode> nodes;
  for (FusionClass fusion : classes) nodes.push_back({fusion, {}, false});
  for (const auto& [from, to] : edges) nodes[from].readers.push_back({to, classes[to]});
  return nodes;
}

TEST_CASE("fusion groups: what joins what") {
  using Groups = std::vector<int32_t>;
  // conv, add, relu make one group. relu, conv make two, since a fused producer would be computed again for every
  // window.
  CHECK(PartitionFusion(Graph({kO, kE, kE}, {{0, 1}, {1, 2}})) == Groups{2, 2, 2});
  CHECK(PartitionFusion(Graph({kE, kO}, {{0, 1}})) == Groups{0, 1});
  // An injective producer waits until epilogues are taken, and joins injective readers.
  CHECK(PartitionFusion(Graph({kI, kI, kE}, {{0, 1}, {1, 2}})) == Groups{2, 2, 2});
  CHECK(PartitionFusion(Graph({kO, kI}, {{0, 1}})) == Groups{0, 1});
  // A reduction is fused with its elementwise producers, but not with its readers.
  CHECK(PartitionFusion(Graph({kE, kR, kE}, {{0, 1}, {1, 2}})) == Groups{1, 1, 2});
  // A diamond is one group; with an opaque branch it is not fused across the branches.
  CHECK(PartitionFusion(Graph({kE, kE, kE, kE}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}})) == Groups{3, 3, 3, 3});
  CHECK(PartitionFusion(Graph({kE, kE, kX, kE}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}})) == Groups{0, 3, 2, 3});
  // The sum of two products is fused with the first one.
  CHECK(PartitionFusion(Graph({kO, kO, kE}, {{0, 2}, {1, 2}})) == Groups{2, 1, 2});
  // A node that is read outside of the group ends its group.
  std::vector<FusionNode> visible = Graph({kE, kE}, {{0, 1}});
  visible[0].is_visible = true;
  CHECK(PartitionFusion(visible) == Groups{0, 1});
}

TEST_CASE("fusion groups: a kernel takes a limited number of tensors") {
  std::vector<FusionNode> nodes = Graph({kI, kI, kI}, {{0, 1}, {1, 2}});
  for (FusionNode& node : nodes) node.num_inputs = kMaxFusionInputs / 2;
  CHECK(PartitionFusion(nodes) == std::vector<int32_t>{1, 1, 2});
  for (FusionNode& node : nodes) node.num_inputs = kMaxFusionInputs / 3;
  CHECK(PartitionFusion(nodes) == std::vector<int32_t>{2, 2, 2});
}

TEST_CASE("fusion groups: only the last node is read outside, one product each, no group too large") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int count = 2 + static_cast<int>(random() % 150);
    const int reach = 1 + static_cast<int>(random() % 10);
    std::vector<FusionNode> nodes(count);
    for (FusionNode& node : nodes) {
      constexpr FusionClass kClasses[] = {kE, kE, kE, FusionClass::kBroadcast, kI, kR, kO, kX};
      node.fusion = kClasses[random() % std::size(kClasses)];
      node.is_visible = random() % 12 == 0;
    }
    for (int i = 1; i < count; ++i) {
      for (unsigned k = 0; k < 1 + random() % 2; ++k) {
        const int from = std::max<int>(0, i - 1 - static_cast<int>(random() % reach));
        nodes[from].readers.push_back({i, nodes[i].fusion});
      }
    }
    const std::vector<int32_t> last = PartitionFusion(nodes);
    std::map<int32_t, int> size, products;
    for (int i = 0; i < count; ++i) {
      ++size[last[i]];
      products[last[i]] += nodes[i].fusion == kO;
      CHECK(last[i] >= i);
      CHECK(last[last[i]] == last[i]);
      if (last[i] == i) continue;
      CHECK(!nodes[i].is_visible);
      for (const FusionNode::Reader& reader : nodes[i].readers) CHECK(last[reader.node] == last[i]);
    }
    for (const auto& [group, members] : size) {
      CHECK(members <= kMaxFusionGroup);
      CHECK(products[group] <= 1);
      if (members > 1) CHECK(nodes[group].fusion != kX);
    }
  }
}

TEST_CASE("fusion groups: a value that 100,000 nodes read, and a chain beside it") {
  constexpr int kCount = 100'000;
  std::vector<FusionNode> nodes(kCount, FusionNode{kE, {}, false});
  for (int i = 1; i < kCount; ++i) {
    nodes[0].readers.push_back({i, kE});
    nodes[i - 1].readers.push_back({i, kE});
  }
  const std::vector<int32_t> last = PartitionFusion(nodes);
  CHECK(last[0] == 0);
  CHECK(last[1] > 1);
}

}  // namespace
}  // namespace ingot::transform
