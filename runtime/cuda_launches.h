// Launches that wait for the driver, which gets several at a time: a sequence of the same kernels and sizes that comes
// again becomes a CUDA graph, which is launched as one, with the arguments of that time. Every other call of the device
// that is ordered by streams, or frees memory, flushes the queue first.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda_driver.h"
#include "runtime/device.h"

namespace ingot {

class CudaLaunchQueue {
 public:
  // What a call of the driver said.
  struct Outcome {
    CudaResult result = kCudaSuccess;
    const char* call = "";
    CudaFunction kernel = nullptr;  // of a launch by itself
  };
  // So many wait here at most, of which the first go to a device that has nothing to do.
  static constexpr size_t kMost = 32, kMostOfIdle = 8;

  explicit CudaLaunchQueue(const CudaDriver& driver) : driver_(driver) {}
  CudaLaunchQueue(const CudaLaunchQueue&) = delete;

  void Add(CudaFunction kernel, const LaunchConfig& config, std::span<void* const> buffers,
           std::span<const int64_t> ints);
  bool IsFull() const { return launches_.size() >= (is_idle_ ? kMostOfIdle : kMost); }
  size_t size() const { return launches_.size(); }
  // Gives all to the driver, on this stream of the current context. What fails, and what comes behind it, is dropped.
  Outcome Flush(CudaStream stream);
  // The same between two events that have times, which are recorded right before and behind the launches, and waits: as
  // one graph, since the host would take longer from call to call than short kernels do.
  Outcome FlushBetween(CudaEvent before, CudaEvent behind);
  void Clear();
  // The device has done everything.
  void SetIdle() { is_idle_ = true; }
  // Drops the graphs, before kernels of theirs go.
  void DropGraphs();

 private:
  struct Launch {
    CudaFunction kernel;
    LaunchConfig config;
    size_t first_word, num_words;
  };
  struct Graph {
    std::vector<Launch> launches;
    std::vector<int64_t> words;  // the arguments that it has
    CudaGraph graph = nullptr;
    CudaGraphExec executable = nullptr;
    std::vector<CudaGraphNode> nodes;
    int64_t used_at = 0;
  };
  static constexpr size_t kFewestOfGraph = 4, kMostGraphs = 64, kMostSeen = 256;

  uint64_t HashOfLaunches() const;
  bool IsSequence(const Graph& graph) const;
  Outcome LaunchEach(CudaStream stream);
  Outcome LaunchGraph(Graph& graph, CudaStream stream);
  Outcome LaunchAsGraph(CudaStream stream);
  Outcome Build(Graph& graph, CudaEvent before = nullptr, CudaEvent behind = nullptr);
  void MakeRoom(uint64_t hash);
  void Destroy(Graph& graph) const;
  CudaKernelNode NodeOf(const Launch& launch);

  const CudaDriver& driver_;
  std::vector<Launch> launches_;
  std::vector<int64_t> words_;
  std::vector<void*> parameters_;  // of one launch, at its words
  bool is_idle_ = true;
  std::map<uint64_t, Graph> graphs_;  // by the hash of their launches
  std::vector<uint64_t> seen_;        // hashes of sequences that came once, oldest first
  int64_t num_flushes_ = 0;
};

}  // namespace ingot
