// The maximum flow by Dinic's algorithm (1970): shortest paths first, many of one length in each phase. What the source
// still reaches when no path is left is its side of a minimum cut.
#include "compiler/transform/minimum_cut.h"

#include <algorithm>

#include "runtime/check.h"

namespace ingot::transform {

size_t MinimumCut::AddNode() {
  edges_of_.emplace_back();
  return edges_of_.size() - 1;
}

void MinimumCut::AddEdge(size_t from, size_t to, double cost) {
  INGOT_CHECK(cost >= 0, "a cut costs nothing or more");
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, cost});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

bool MinimumCut::Rank() {
  ranks_.assign(edges_of_.size(), -1);
  ranks_[kSource] = 0;
  std::vector<size_t> reached = {kSource};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const size_t e : edges_of_[reached[i]]) {
      if (edges_[e].left <= 0 || ranks_[edges_[e].to] >= 0) continue;
      ranks_[edges_[e].to] = ranks_[reached[i]] + 1;
      reached.push_back(edges_[e].to);
    }
  }
  return ranks_[kSink] >= 0;
}

// Depth first along edges to the next rank, with the path on a stack of our own: graphs may be deep.
double MinimumCut::Push() {
  std::vector<size_t> path;  // edges
  size_t node = kSource;
  while (true) {
    if (node == kSink) {
      double flow = kNever;
      for (const size_t e : path) flow = std::min(flow, edges_[e].left);
      INGOT_CHECK(flow < kNever, "some edge of each path has a finite cost");
      for (const size_t e : path) {
        edges_[e].left -= flow;
        edges_[e ^ 1].left += flow;
      }
      return flow;
    }
    size_t& next = next_[node];
    const std::vector<size_t>& own = edges_of_[node];
    while (next < own.size() && (edges_[own[next]].left <= 0 || ranks_[edges_[own[next]].to] != ranks_[node] + 1))
      ++next;
    if (next < own.size()) {
      path.push_back(own[next]);
      node = edges_[own[next]].to;
      continue;
    }
    if (path.empty()) return 0;
    node = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[node];
  }
}

std::vector<bool> MinimumCut::Solve() {
  while (Rank()) {
    next_.assign(edges_of_.size(), 0);
    while (Push() > 0) {
    }
  }
  std::vector<bool> sides;
  for (const int rank : ranks_) sides.push_back(rank >= 0);
  return sides;
}

}  // namespace ingot::transform
