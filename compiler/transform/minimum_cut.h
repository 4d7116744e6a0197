// The cheapest way to give each node of a graph one of two sides, where each pair of neighbours on different sides
// costs something: a minimum cut between a source and a sink.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace ingot::transform {

class MinimumCut {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr size_t kSource = 0, kSink = 1;

  size_t AddNode();
  // `cost` >= 0 is paid when `from` is on the source's side and `to` on the sink's.
  void AddEdge(size_t from, size_t to, double cost);
  // Returns for each node whether it is on the source's side; of equally cheap cuts the one with the fewest nodes
  // there. Source and sink must not be joined by edges that cost kNever alone.
  std::vector<bool> Solve();

 private:
  struct Edge {
    size_t to;
    double left;  // capacity that is not used yet
  };
  bool Rank();    // by distance from the source; false: the sink cannot be reached
  double Push();  // along one path; returns the flow, 0 without a path

  std::vector<Edge> edges_;  // an edge and its reverse stand side by side
  std::vector<std::vector<size_t>> edges_of_ = std::vector<std::vector<size_t>>(2);
  std::vector<int> ranks_;
  std::vector<size_t> next_;  // of each node, the first edge that may still take flow
};

}  // namespace ingot::transform
