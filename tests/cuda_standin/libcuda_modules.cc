// The entry points of libcuda.cc for modules, launches, and graphs of launches.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/cuda_standin/driver_state.h"

namespace ingot::ptx {
namespace {

FunctionState* AsFunction(const Gpu& d, void* function) {
  for (const auto& [handle, module] : d.modules) {
    for (const auto& [name, state] : module->functions) {
      if (state.get() == function) return state.get();
    }
  }
  return nullptr;
}

}  // namespace
}  // namespace ingot::ptx

using namespace ingot;       // NOLINT: the entry points are C
using namespace ingot::ptx;  // NOLINT

// ---- modules and launches
INGOT_ENTRY cuModuleLoadDataEx(CudaModule* module, const void* image, unsigned num_options, int* options,
                               void** values) {
  return Enter([&](Gpu& d) -> CudaResult {
    // Machine code is for GPUs; a cubin of tests has PTX behind its name.
    const auto* text = static_cast<const char*>(image);
    const std::string_view cubin =
        "\x7f"
        "ELF stand-in ";
    if (std::strncmp(text, cubin.data(), cubin.size()) == 0) {
      text += cubin.size();
    } else if (std::strncmp(text, cubin.data(), 4) == 0) {
      return std::strstr(text + 4, " later ") != nullptr ? kInvalidImage : kCudaNoBinaryForGpu;
    }
    const char* const version = std::strstr(text, ".version ");
    if (version == nullptr) return kInvalidImage;  // no PTX
    int major = 0, minor = 0;
    std::sscanf(version, ".version %d.%d", &major, &minor);
    // PTX 7.x came with CUDA 11.x, and PTX 8.x with CUDA 12.x.
    if (1000 * (major + 4) + 10 * minor > DriverVersion()) return kCudaUnsupportedPtxVersion;
    const Result<ModuleId> loaded = d.machine->LoadModule(text);
    if (!loaded.ok()) {
      char* log = nullptr;
      size_t size = 0;
      for (unsigned k = 0; k < num_options; ++k) {
        if (options[k] == kCudaJitErrorLog) log = static_cast<char*>(values[k]);
        if (options[k] == kCudaJitErrorLogBytes) size = reinterpret_cast<size_t>(values[k]);
      }
      if (log != nullptr && size > 0) std::snprintf(log, size, "%s", loaded.status().message().c_str());
      switch (loaded.status().code()) {
        case StatusCode::kUnsupportedFile:
          return kCudaNoBinaryForGpu;
        case StatusCode::kOutOfMemory:
          return kCudaOutOfMemory;
        default:
          return kCudaInvalidPtx;
      }
    }
    const bool is_ptx = text == image;
    if (is_ptx && !TheDriver().compiled.insert(text).second) ++TheDriver().known_modules;
    auto state = std::make_unique<ModuleState>();
    state->id = *loaded;
    void* handle = state.get();
    d.modules.emplace(handle, std::move(state));
    *module = static_cast<CudaModule>(handle);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuModuleUnload(CudaModule module) {
  return Enter(
      [&](Gpu& d) -> CudaResult {
        const auto found = d.modules.find(module);
        if (found == d.modules.end()) return kInvalidHandle;
        static_cast<void>(RunAll(d));
        static_cast<void>(d.machine->UnloadModule(found->second->id));
        d.modules.erase(found);
        return kCudaSuccess;
      },
      true, true);
}
INGOT_ENTRY cuModuleGetFunction(CudaFunction* function, CudaModule module, const char* name) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.modules.find(module);
    if (found == d.modules.end()) return kInvalidHandle;
    std::unique_ptr<FunctionState>& state = found->second->functions[name];
    if (state == nullptr) {
      const Result<KernelFacts> facts = d.machine->Facts(found->second->id, name);
      if (!facts.ok()) {
        found->second->functions.erase(name);
        return kCudaNotFound;
      }
      state = std::make_unique<FunctionState>(FunctionState{found->second->id, name, *facts});
    }
    *function = reinterpret_cast<CudaFunction>(state.get());
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuFuncGetAttribute(int* value, int attribute, CudaFunction function) {
  return Enter([&](Gpu& d) -> CudaResult {
    const FunctionState* state = AsFunction(d, function);
    if (state == nullptr) return kInvalidHandle;
    switch (attribute) {
      case 0:
        return *value = static_cast<int>(state->facts.max_threads), kCudaSuccess;
      case 1:
        return *value = static_cast<int>(state->facts.static_shared_bytes), kCudaSuccess;
      case 3:
        return *value = static_cast<int>(state->facts.local_bytes), kCudaSuccess;
      case kCudaFuncMaxDynamicShared:
        return *value = static_cast<int>(state->max_dynamic_shared), kCudaSuccess;
      default:
        return kCudaInvalidValue;
    }
  });
}
INGOT_ENTRY cuFuncSetAttribute(CudaFunction function, int attribute, int value) {
  return Enter([&](Gpu& d) -> CudaResult {
    FunctionState* state = AsFunction(d, function);
    if (state == nullptr) return kInvalidHandle;
    if (attribute != kCudaFuncMaxDynamicShared || value < 0 || value > d.machine->limits().shared_bytes_optin)
      return kCudaInvalidValue;
    state->max_dynamic_shared = value;
    return kCudaSuccess;
  });
}
// A launch as it is asked for; its parameters' values are those of now.
static CudaResult TakeLaunch(const Gpu& d, const CudaKernelNode& node, LaunchState& launch) {
  const FunctionState* state = AsFunction(d, node.function);
  if (state == nullptr) return kInvalidHandle;
  if (node.extra != nullptr || node.grid_x == 0 || node.grid_y == 0 || node.grid_z == 0) return kCudaInvalidValue;
  if (int64_t{node.block_x} * node.block_y * node.block_z > state->facts.max_threads) return kOutOfResources;
  launch.function = state;
  launch.config = {
      {node.grid_x, node.grid_y, node.grid_z}, {node.block_x, node.block_y, node.block_z}, node.shared_bytes};
  launch.arguments = {};
  for (size_t k = 0; k < state->facts.param_sizes.size(); ++k)
    launch.arguments.AddBytes(node.parameters[k], state->facts.param_sizes[k]);
  return kCudaSuccess;
}
static void EnqueueLaunch(Gpu& d, CudaStream stream, const LaunchState& launch) {
  Enqueue(d, stream,
          [&d, config = launch.config, arguments = launch.arguments, module = launch.function->module,
           name = launch.function->name, shared = launch.function->max_dynamic_shared]() -> CudaResult {
            for (const std::vector<uint8_t>& argument : arguments.values()) {
              uint64_t address = 0;
              if (argument.size() == sizeof address) std::memcpy(&address, argument.data(), sizeof address);
              if (!IsThere(d, address)) {
                return Fault(kIllegalAddress, "kernel \"" + name + "\": memory that is not allocated yet");
              }
            }
            const Result<LaunchCounts> counts = d.machine->Launch(module, name, config, arguments, shared);
            if (counts.ok()) return kCudaSuccess;
            const auto says = [&](const char* text) {
              return counts.status().message().find(text) != std::string::npos;
            };
            const bool address = says("out of bounds") || says("no address") || says(" is null");
            return Fault(address ? kIllegalAddress : kLaunchFailed, counts.status().message());
          });
}
INGOT_ENTRY cuLaunchKernel(CudaFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared_bytes, CudaStream stream,
                           void** parameters, void** extra) {
  return Enter([&](Gpu& d) -> CudaResult {
    if (!IsStream(d, stream)) return kInvalidHandle;
    LaunchState launch;
    const CudaKernelNode node{function, grid_x,  grid_y,       grid_z,     block_x,
                              block_y,  block_z, shared_bytes, parameters, extra};
    const CudaResult taken = TakeLaunch(d, node, launch);
    if (taken == kCudaSuccess) EnqueueLaunch(d, stream, launch);
    return taken;
  });
}

// ---- graphs, of launches each of which depends on the one before

INGOT_ENTRY cuGraphCreate(CudaGraph* graph, unsigned flags) {
  return Enter([&](Gpu& d) -> CudaResult {
    if (flags != 0) return kCudaInvalidValue;
    auto state = std::make_unique<GraphState>();
    *graph = reinterpret_cast<CudaGraph>(state.get());
    d.graphs[*graph] = std::move(state);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuGraphDestroy(CudaGraph graph) {
  return Enter([&](Gpu& d) { return d.graphs.erase(graph) != 0 ? kCudaSuccess : kInvalidHandle; }, true, true);
}
// What hangs on the node before alone; no other ones are executed here.
static bool IsChain(const std::deque<LaunchState>& nodes, const CudaGraphNode* before, size_t num_before) {
  if (nodes.empty()) return num_before == 0;
  return num_before == 1 && before[0] == reinterpret_cast<CudaGraphNode>(const_cast<LaunchState*>(&nodes.back()));
}
INGOT_ENTRY cuGraphAddKernelNode(CudaGraphNode* node, CudaGraph graph, const CudaGraphNode* before, size_t num_before,
                                 const CudaKernelNode* launch) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.graphs.find(graph);
    if (found == d.graphs.end()) return kInvalidHandle;
    std::deque<LaunchState>& nodes = found->second->nodes;
    if (!IsChain(nodes, before, num_before)) return kCudaInvalidValue;
    LaunchState state;
    const CudaResult taken = TakeLaunch(d, *launch, state);
    if (taken != kCudaSuccess) return taken;
    *node = reinterpret_cast<CudaGraphNode>(&nodes.emplace_back(std::move(state)));
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuGraphAddEventRecordNode(CudaGraphNode* node, CudaGraph graph, const CudaGraphNode* before,
                                      size_t num_before, CudaEvent event) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.graphs.find(graph);
    const auto recorded = d.events.find(event);
    if (found == d.graphs.end() || recorded == d.events.end()) return kInvalidHandle;
    std::deque<LaunchState>& nodes = found->second->nodes;
    if (!IsChain(nodes, before, num_before)) return kCudaInvalidValue;
    LaunchState& state = nodes.emplace_back();
    state.event = recorded->second;
    *node = reinterpret_cast<CudaGraphNode>(&state);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuGraphInstantiateWithFlags(CudaGraphExec* executable, CudaGraph graph, unsigned long long flags) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.graphs.find(graph);
    if (found == d.graphs.end()) return kInvalidHandle;
    if (flags != 0) return kCudaInvalidValue;
    auto state = std::make_unique<GraphExecState>();
    for (LaunchState& node : found->second->nodes) state->by_node[&node] = &state->launches.emplace_back(node);
    *executable = reinterpret_cast<CudaGraphExec>(state.get());
    d.graph_executables[*executable] = std::move(state);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuGraphExecDestroy(CudaGraphExec executable) {
  return Enter([&](Gpu& d) { return d.graph_executables.erase(executable) != 0 ? kCudaSuccess : kInvalidHandle; }, true,
               true);
}
INGOT_ENTRY cuGraphExecKernelNodeSetParams(CudaGraphExec executable, CudaGraphNode node, const CudaKernelNode* launch) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.graph_executables.find(executable);
    if (found == d.graph_executables.end()) return kInvalidHandle;
    const auto of_node = found->second->by_node.find(node);
    if (of_node == found->second->by_node.end()) return kInvalidHandle;
    if (launch->function != reinterpret_cast<const CudaFunctionObject*>(of_node->second->function))
      return kCudaInvalidValue;
    return TakeLaunch(d, *launch, *of_node->second);
  });
}
INGOT_ENTRY cuGraphLaunch(CudaGraphExec executable, CudaStream stream) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.graph_executables.find(executable);
    if (found == d.graph_executables.end() || !IsStream(d, stream)) return kInvalidHandle;
    for (const LaunchState& launch : found->second->launches) {
      if (launch.event != nullptr) {
        EnqueueRecord(d, stream, launch.event);
      } else {
        EnqueueLaunch(d, stream, launch);
      }
    }
    return kCudaSuccess;
  });
}
