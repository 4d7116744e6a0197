#include "runtime/cuda_launches.h"

#include <algorithm>

namespace ingot {
namespace {

bool IsSame(const LaunchConfig& a, const LaunchConfig& b) {
  return std::ranges::equal(a.grid, b.grid) && std::ranges::equal(a.block, b.block) && a.shared_bytes == b.shared_bytes;
}

unsigned Size(int64_t value) { return static_cast<unsigned>(value); }

}  // namespace

void CudaLaunchQueue::Add(CudaFunction kernel, const LaunchConfig& config, std::span<void* const> buffers,
                          std::span<const int64_t> ints) {
  launches_.push_back({kernel, config, words_.size(), buffers.size() + ints.size()});
  for (void* const buffer : buffers) words_.push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>(buffer)));
  words_.insert(words_.end(), ints.begin(), ints.end());
}

CudaLaunchQueue::Outcome CudaLaunchQueue::Flush(CudaStream stream) {
  if (launches_.empty()) return {};
  ++num_flushes_;
  is_idle_ = false;
  const bool is_short = launches_.size() < kFewestOfGraph || driver_.GraphInstantiate == nullptr;
  const Outcome outcome = is_short ? LaunchEach(stream) : LaunchAsGraph(stream);
  Clear();
  return outcome;
}

CudaLaunchQueue::Outcome CudaLaunchQueue::FlushBetween(CudaEvent before, CudaEvent behind) {
  ++num_flushes_;
  is_idle_ = false;
  Outcome outcome;
  if (driver_.GraphInstantiate != nullptr) {
    Graph graph;
    outcome = Build(graph, before, behind);
    if (outcome.result == kCudaSuccess) outcome = {driver_.GraphLaunch(graph.executable, nullptr), "cuGraphLaunch"};
    if (outcome.result == kCudaSuccess) outcome = {driver_.StreamSynchronize(nullptr), "cuStreamSynchronize"};
    Destroy(graph);
  } else {
    outcome = {driver_.EventRecord(before, nullptr), "cuEventRecord"};
    if (outcome.result == kCudaSuccess) outcome = LaunchEach(nullptr);
    if (outcome.result == kCudaSuccess) outcome = {driver_.EventRecord(behind, nullptr), "cuEventRecord"};
  }
  Clear();
  return outcome;
}

void CudaLaunchQueue::Clear() {
  launches_.clear();
  words_.clear();
}

// The second time that a sequence comes it becomes a graph, which saves time and takes memory: where there is none,
// launches go one by one.
CudaLaunchQueue::Outcome CudaLaunchQueue::LaunchAsGraph(CudaStream stream) {
  const uint64_t hash = HashOfLaunches();
  const auto known = graphs_.find(hash);
  const bool is_known = known != graphs_.end() && IsSequence(known->second);
  const auto seen = std::ranges::find(seen_, hash);
  if (!is_known && seen == seen_.end()) {
    if (seen_.size() == kMostSeen) seen_.erase(seen_.begin());
    seen_.push_back(hash);
    return LaunchEach(stream);
  }
  Outcome outcome;
  if (is_known) {
    outcome = LaunchGraph(known->second, stream);
  } else {
    seen_.erase(seen);
    MakeRoom(hash);
    Graph& graph = graphs_[hash];
    outcome = Build(graph);
    if (outcome.result == kCudaSuccess) {
      outcome = LaunchGraph(graph, stream);
    } else {
      Destroy(graph);
      graphs_.erase(hash);
    }
  }
  return outcome.result == kCudaOutOfMemory ? LaunchEach(stream) : outcome;
}

// For a graph of this hash: the one that has it goes, or, of too many, the one that was used longest ago.
void CudaLaunchQueue::MakeRoom(uint64_t hash) {
  auto replaced = graphs_.find(hash);
  if (replaced == graphs_.end() && graphs_.size() == kMostGraphs)
    replaced = std::ranges::min_element(graphs_, {}, [](const auto& entry) { return entry.second.used_at; });
  if (replaced == graphs_.end()) return;
  static_cast<void>(driver_.StreamSynchronize(nullptr));  // it may run
  Destroy(replaced->second);
  graphs_.erase(replaced);
}

void CudaLaunchQueue::DropGraphs() {
  if (!graphs_.empty()) static_cast<void>(driver_.StreamSynchronize(nullptr));
  for (auto& [hash, graph] : graphs_) Destroy(graph);
  graphs_.clear();
  seen_.clear();
}

uint64_t CudaLaunchQueue::HashOfLaunches() const {
  uint64_t hash = launches_.size();
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); };
  for (const Launch& launch : launches_) {
    add(reinterpret_cast<uintptr_t>(launch.kernel));
    for (size_t axis = 0; axis < 3; ++axis) {
      add(static_cast<uint64_t>(launch.config.grid[axis]) << 16 ^ static_cast<uint64_t>(launch.config.block[axis]));
    }
    add(static_cast<uint64_t>(launch.config.shared_bytes));
    add(launch.num_words);
  }
  return hash;
}

// Whether the graph is of the launches that wait, whatever their arguments are.
bool CudaLaunchQueue::IsSequence(const Graph& graph) const {
  return std::ranges::equal(graph.launches, launches_, [](const Launch& a, const Launch& b) {
    return a.kernel == b.kernel && a.num_words == b.num_words && IsSame(a.config, b.config);
  });
}

// The driver copies the values that it points to.
CudaKernelNode CudaLaunchQueue::NodeOf(const Launch& launch) {
  parameters_.clear();
  for (size_t i = 0; i < launch.num_words; ++i) parameters_.push_back(&words_[launch.first_word + i]);
  const auto& [grid, block, shared_bytes] = launch.config;
  return {launch.kernel,  Size(grid[0]),  Size(grid[1]),      Size(grid[2]),      Size(block[0]),
          Size(block[1]), Size(block[2]), Size(shared_bytes), parameters_.data(), nullptr};
}

CudaLaunchQueue::Outcome CudaLaunchQueue::LaunchEach(CudaStream stream) {
  for (const Launch& launch : launches_) {
    const CudaKernelNode node = NodeOf(launch);
    const CudaResult result =
        driver_.LaunchKernel(node.function, node.grid_x, node.grid_y, node.grid_z, node.block_x, node.block_y,
                             node.block_z, node.shared_bytes, stream, node.parameters, nullptr);
    if (result != kCudaSuccess) return {result, "cuLaunchKernel", launch.kernel};
  }
  return {};
}

// A graph of the launches that wait, each of which depends on the one before; with records of the events, unless they are
// null.
CudaLaunchQueue::Outcome CudaLaunchQueue::Build(Graph& graph, CudaEvent before_all, CudaEvent behind_all) {
  CudaResult result = driver_.GraphCreate(&graph.graph, 0);
  if (result != kCudaSuccess) return {result, "cuGraphCreate"};
  CudaGraphNode last = nullptr;
  const auto add_event = [&](CudaEvent event) -> CudaResult {
    if (event == nullptr) return kCudaSuccess;
    const CudaGraphNode before = last;
    return driver_.GraphAddEventNode(&last, graph.graph, &before, before == nullptr ? 0 : 1, event);
  };
  result = add_event(before_all);
  if (result != kCudaSuccess) return {result, "cuGraphAddEventRecordNode"};
  for (const Launch& launch : launches_) {
    const CudaKernelNode node = NodeOf(launch);
    const CudaGraphNode before = last;
    result = driver_.GraphAddKernelNode(&last, graph.graph, &before, before == nullptr ? 0 : 1, &node);
    if (result != kCudaSuccess) return {result, "cuGraphAddKernelNode", launch.kernel};
    graph.nodes.push_back(last);
  }
  result = add_event(behind_all);
  if (result != kCudaSuccess) return {result, "cuGraphAddEventRecordNode"};
  result = driver_.GraphInstantiate(&graph.executable, graph.graph, 0);
  if (result != kCudaSuccess) return {result, "cuGraphInstantiateWithFlags"};
  graph.launches = launches_;
  graph.words = words_;
  return {};
}

CudaLaunchQueue::Outcome CudaLaunchQueue::LaunchGraph(Graph& graph, CudaStream stream) {
  graph.used_at = num_flushes_;
  for (size_t i = 0; i < launches_.size(); ++i) {
    const Launch& launch = launches_[i];
    const auto first = static_cast<std::ptrdiff_t>(launch.first_word);
    const auto end = first + static_cast<std::ptrdiff_t>(launch.num_words);
    if (std::equal(words_.begin() + first, words_.begin() + end, graph.words.begin() + first)) continue;
    const CudaKernelNode node = NodeOf(launch);
    const CudaResult result = driver_.GraphSetKernelNode(graph.executable, graph.nodes[i], &node);
    if (result != kCudaSuccess) return {result, "cuGraphExecKernelNodeSetParams", launch.kernel};
    std::copy(words_.begin() + first, words_.begin() + end, graph.words.begin() + first);
  }
  return {driver_.GraphLaunch(graph.executable, stream), "cuGraphLaunch"};
}

void CudaLaunchQueue::Destroy(Graph& graph) const {
  if (graph.executable != nullptr) static_cast<void>(driver_.GraphExecDestroy(graph.executable));
  if (graph.graph != nullptr) static_cast<void>(driver_.GraphDestroy(graph.graph));
}

}  // namespace ingot
