// Nodes become ready when all that they wait for stand in front of them; the ready one that came first in the file goes
// next. The time is about that of reading the names.
#include "compiler/importer/node_order.h"

#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ingot::importer {
namespace {

// Calls fn with each name that a node or a graph in its attributes takes, those that such a graph itself gives among
// them.
void ForEachUse(const OnnxNode& node, const std::function<void(std::string_view)>& fn) {
  for (const std::string& name : node.inputs) fn(name);
  for (const OnnxAttribute& attribute : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<const OnnxGraph>>(&attribute.value);
    if (graph == nullptr || *graph == nullptr) continue;
    for (const OnnxNode& inner : (*graph)->nodes) ForEachUse(inner, fn);
    for (const OnnxValueInfo& output : (*graph)->outputs) fn(output.name);
  }
}

}  // namespace

void SortNodes(std::vector<OnnxNode>& nodes) {
  std::unordered_map<std::string_view, size_t> giver;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs) {
      if (!name.empty() && !giver.emplace(name, i).second) return;
    }
  }
  bool is_sorted = true;
  std::vector<std::vector<size_t>> waiting(nodes.size());  // for each node
  std::vector<size_t> missing(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    ForEachUse(nodes[i], [&](std::string_view name) {
      const auto found = giver.find(name);
      if (found == giver.end() || found->second == i) return;
      is_sorted &= found->second < i;
      waiting[found->second].push_back(i);
      ++missing[i];
    });
  }
  if (is_sorted) return;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const size_t other : waiting[node]) {
      if (--missing[other] == 0) ready.push(other);
    }
  }
  if (order.size() != nodes.size()) return;
  std::vector<OnnxNode> sorted;
  sorted.reserve(nodes.size());
  for (const size_t i : order) sorted.push_back(std::move(nodes[i]));
  nodes = std::move(sorted);
}

}  // namespace ingot::importer
