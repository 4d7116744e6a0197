// What the driver of libcuda.cc keeps: its GPUs, what their handles point to, queued work, injected faults. Every entry
// point goes through Enter.
#pragma once

#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda_driver.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::ptx {

constexpr CudaResult kNotInitialized = 3, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201,
                     kInvalidHandle = 400, kNotReady = 600, kIllegalAddress = 700, kOutOfResources = 701,
                     kLaunchFailed = 719;

// Queued work: what stands in a stream up to a number.
struct WorkPlace {
  void* stream = nullptr;
  int64_t number = 0;  // 0: nothing
};

// What the opaque handles of the API point to.
struct StreamState {
  bool waits_for_default = true;  // and the default stream for it
};
struct EventState {
  bool has_time = false;
  WorkPlace recorded;  // has to be done
  std::chrono::steady_clock::time_point time{};
};
struct FunctionState {
  ModuleId module;
  std::string name;
  KernelFacts facts;
  int64_t max_dynamic_shared = -1;
};
struct ModuleState {
  ModuleId id;
  std::map<std::string, std::unique_ptr<FunctionState>> functions;
};
struct PoolState {};
// A launch with the values of its parameters, or, in a graph, the record of an event.
struct LaunchState {
  std::shared_ptr<EventState> event;  // null: a launch
  const FunctionState* function = nullptr;
  ptx::LaunchConfig config;
  Arguments arguments;
};
struct GraphState {
  std::deque<LaunchState> nodes;  // in the order of their dependencies
};
struct GraphExecState {
  std::map<void*, LaunchState*> by_node;
  std::deque<LaunchState> launches;
};

// One GPU, its primary context and what is in it.
struct Gpu {
  std::unique_ptr<Machine> machine;  // while the primary context is retained
  int context_references = 0;
  CudaResult sticky = 0;
  std::map<void*, std::unique_ptr<StreamState>> streams;
  std::map<void*, std::shared_ptr<EventState>> events;
  std::map<void*, std::unique_ptr<ModuleState>> modules;
  std::map<void*, std::unique_ptr<PoolState>> pools;
  std::map<void*, std::unique_ptr<GraphState>> graphs;
  std::map<void*, std::unique_ptr<GraphExecState>> graph_executables;
  std::map<void*, size_t> pinned;
  std::set<uint64_t> allocations;
  std::map<uint64_t, size_t> not_yet_there;  // memory of which the allocation waits in its stream
  // Queued work by stream, in the order of the calls; number of the next one.
  struct Work {
    int64_t number;
    std::vector<WorkPlace> after;  // in other streams
    std::function<CudaResult()> run;
  };
  std::map<void*, std::deque<Work>> queues;
  int64_t next_work = 1;
};
constexpr int kMaxGpus = 4;

struct Driver {
  std::recursive_mutex mutex;
  bool initialized = false;
  Gpu gpus[kMaxGpus];
  std::string last_fault;
  std::set<std::string> compiled;  // PTX
  int64_t known_modules = 0;       // of which the PTX was compiled before
  bool runs_ahead = false;         // streams that do not wait for the default one
  // Injected faults.
  int64_t calls = 0, fail_at = -1;
  CudaResult fail_with = 0;
  bool fail_on = false;  // all later calls, too
};

Driver& TheDriver();
inline thread_local std::vector<Gpu*> contexts_pushed;

int64_t FromEnvironment(const char* name, int64_t otherwise);
int DriverVersion();
// Runs queued work up to there: what stands before it in its stream, what that has to wait for, and nothing else. So of
// streams that are not ordered the one that is waited for is always the first one.
CudaResult RunUntil(Gpu& d, const WorkPlace& place);
CudaResult RunAll(Gpu& d);
void Enqueue(Gpu& d, void* stream, std::function<CudaResult()> run, std::vector<WorkPlace> after = {});
void EnqueueRecord(Gpu& d, CudaStream stream, const std::shared_ptr<EventState>& state);
// The last work of a stream.
WorkPlace LastWork(const Gpu& d, void* stream);
// Whether the stream's work may use this memory by now.
bool IsThere(const Gpu& d, uint64_t address);
// Says why, and returns the error.
CudaResult Fault(CudaResult error, const std::string& why);
bool IsStream(const Gpu& d, void* stream);

// Every entry point: one at a time, an injected fault first, then the sticky error. The body gets the GPU of the current
// context, or the first one where there is none.
template <typename Body>
CudaResult Enter(Body body, bool needs_context = true, bool runs_when_lost = false, bool needs_init = true) {
  Driver& driver = TheDriver();
  std::lock_guard lock(driver.mutex);
  Gpu& d = contexts_pushed.empty() ? driver.gpus[0] : *contexts_pushed.back();
  ++driver.calls;
  if (driver.fail_at > 0 && (driver.calls == driver.fail_at || (driver.fail_on && driver.calls > driver.fail_at))) {
    const CudaResult error = driver.fail_with;
    const bool loses_context = error >= kIllegalAddress && error <= kLaunchFailed && error != kOutOfResources;
    if (loses_context && d.machine != nullptr) d.sticky = error;
    // What releases something does so, and tells of an earlier failure.
    if (!runs_when_lost) return error;
    static_cast<void>(body(d));
    return error;
  }
  if (needs_init && !driver.initialized) return kNotInitialized;
  if (d.sticky != 0 && !runs_when_lost) return d.sticky;
  if (needs_context && (d.machine == nullptr || contexts_pushed.empty())) return kInvalidContext;
  const CudaResult result = body(d);
  return d.sticky != 0 ? d.sticky : result;
}

}  // namespace ingot::ptx

#define INGOT_ENTRY extern "C" __attribute__((visibility("default"))) CudaResult
