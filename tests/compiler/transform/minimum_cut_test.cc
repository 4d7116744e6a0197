// Minimum cuts: against all cuts of small random graphs.
#include "compiler/transform/minimum_cut.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ingot::transform {
namespace {

struct Edge {
  size_t from, to;
  double cost;
};

double CostOf(const std::vector<Edge>& edges, const std::vector<bool>& sides) {
  double cost = 0;
  for (const Edge& edge : edges) {
    if (sides[edge.from] && !sides[edge.to]) cost += edge.cost;
  }
  return cost;
}

TEST_CASE("a minimum cut is the cheapest of all cuts, and of these the one with the fewest nodes at the source") {
  std::mt19937 random(1);
  const auto below = [&](uint32_t limit) { return random() % limit; };
  for (int round = 0; round < 300; ++round) {
    const size_t nodes = 2 + below(8);
    MinimumCut cut;
    for (size_t i = 2; i < nodes; ++i) CHECK(cut.AddNode() == i);
    std::vector<Edge> edges;
    for (uint32_t i = below(25); i > 0; --i) {
      Edge edge{below(static_cast<uint32_t>(nodes)), below(static_cast<uint32_t>(nodes)), below(6) * 1.0};
      // Edges that never may be cut go to nodes of a higher number, and none leaves the source.
      if (edge.cost == 5 && edge.from > 1 && edge.to > edge.from) edge.cost = MinimumCut::kNever;
      edges.push_back(edge);
      cut.AddEdge(edge.from, edge.to, edge.cost);
    }
    const std::vector<bool> found = cut.Solve();
    REQUIRE(found.size() == nodes);
    CHECK(found[MinimumCut::kSource]);
    CHECK_FALSE(found[MinimumCut::kSink]);
    double best = MinimumCut::kNever;
    ptrdiff_t fewest = 0;
    for (size_t mask = 0; mask < size_t{1} << (nodes - 2); ++mask) {
      std::vector<bool> sides = {true, false};
      for (size_t i = 2; i < nodes; ++i) sides.push_back((mask >> (i - 2)) % 2 == 1);
      const double cost = CostOf(edges, sides);
      const ptrdiff_t count = std::ranges::count(sides, true);
      if (cost > best || (cost == best && count >= fewest)) continue;
      best = cost;
      fewest = count;
    }
    CHECK(CostOf(edges, found) == best);
    CHECK(std::ranges::count(found, true) == fewest);
  }
}

TEST_CASE("a long chain is cut at its cheapest edge") {
  MinimumCut cut;
  size_t last = MinimumCut::kSource;
  for (int i = 0; i < 100000; ++i) {
    const size_t node = cut.AddNode();
    cut.AddEdge(last, node, i == 70000 ? 1 : 2);
    last = node;
  }
  cut.AddEdge(last, MinimumCut::kSink, 2);
  CHECK(std::ranges::count(cut.Solve(), true) == 70001);
}

}  // namespace
}  // namespace ingot::transform
