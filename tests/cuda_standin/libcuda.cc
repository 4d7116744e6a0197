// libcuda.so.1 over a Machine: the driver entry points that Ingot uses, with the driver's rules. Work is queued and
// runs when somebody waits for it, so that memory that is reused too early shows; a fault of a kernel loses the
// context, and every later call returns the same error until the primary context is released (a GPU's driver
// returns it for good: observed on an H200 with driver 580). Live objects are
// counted, and any call can be made to fail (standin_control.h).
//
// Environment: INGOT_STANDIN_SM names the architecture (80 without), INGOT_STANDIN_DEVICES says how many GPUs there are
// (1), INGOT_STANDIN_MEMORY how many bytes each has, INGOT_STANDIN_DRIVER the driver's version (12040: CUDA 12.4);
// INGOT_STANDIN_QUIET=1 keeps the explanation of a fault off standard error.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "runtime/cuda_driver.h"
#include "tests/cuda_standin/machine.h"
#include "tests/cuda_standin/standin_control.h"

namespace ingot::ptx {
namespace {

constexpr CudaResult kNotInitialized = 3, kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201,
                     kInvalidHandle = 400, kNotReady = 600, kIllegalAddress = 700, kOutOfResources = 701,
                     kLaunchFailed = 719;

struct ErrorRow {
  CudaResult error;
  const char *name, *text;
};
constexpr ErrorRow kErrors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

// What the opaque handles of the API point to.
struct StreamState {};
struct EventState {
  bool has_time = false;
  int64_t recorded_at = 0;  // work up to here has to be done
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
  // Queued work, in the order of the calls; number of the next one.
  struct Work {
    int64_t number;
    void* stream;
    std::function<CudaResult()> run;
  };
  std::deque<Work> queue;
  int64_t next_work = 1;
};
constexpr int kMaxGpus = 4;

struct Driver {
  std::recursive_mutex mutex;
  bool initialized = false;
  Gpu gpus[kMaxGpus];
  std::string last_fault;
  // Injected faults.
  int64_t calls = 0, fail_at = -1;
  CudaResult fail_with = 0;
  bool fail_on = false;  // all later calls, too
};

Driver& TheDriver() {
  static Driver driver;
  return driver;
}
thread_local std::vector<Gpu*> contexts_pushed;

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}
int NumGpus() {
  return static_cast<int>(std::clamp<int64_t>(FromEnvironment("INGOT_STANDIN_DEVICES", 1), 0, kMaxGpus));
}
int DriverVersion() { return static_cast<int>(FromEnvironment("INGOT_STANDIN_DRIVER", 12040)); }
int64_t MemoryBytes() { return FromEnvironment("INGOT_STANDIN_MEMORY", MachineOptions().memory_bytes); }
// Null: there is no such device.
Gpu* FindGpu(CudaOrdinal device) { return device >= 0 && device < NumGpus() ? &TheDriver().gpus[device] : nullptr; }

// Runs queued work up to a number.
CudaResult RunUntil(Gpu& d, int64_t number) {
  while (!d.queue.empty() && d.queue.front().number <= number) {
    const Gpu::Work work = std::move(d.queue.front());
    d.queue.pop_front();
    if (d.sticky != 0) continue;
    d.sticky = work.run();
  }
  return d.sticky;
}
void Enqueue(Gpu& d, void* stream, std::function<CudaResult()> run) {
  d.queue.push_back({d.next_work++, stream, std::move(run)});
}

CudaResult Fault(CudaResult error, const std::string& why) {
  TheDriver().last_fault = why;
  if (std::getenv("INGOT_STANDIN_QUIET") == nullptr) std::fprintf(stderr, "cuda stand-in: %s\n", why.c_str());
  return error;
}

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

bool IsStream(const Gpu& d, void* stream) { return stream == nullptr || d.streams.count(stream) != 0; }

// The last work of a stream. The default stream waits for all streams, and they for it.
int64_t LastWork(const Gpu& d, void* stream) {
  int64_t last = 0;
  for (const Gpu::Work& work : d.queue) {
    if (stream == nullptr || work.stream == stream || work.stream == nullptr) last = work.number;
  }
  return last;
}

bool InPinned(const Gpu& d, const void* host, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(host);
  for (const auto& [start, bytes] : d.pinned) {
    const auto base = reinterpret_cast<uintptr_t>(start);
    if (address >= base && size <= bytes && address - base <= bytes - size) return true;
  }
  return false;
}

// A copy; one that touches pageable memory of the host is done when the call returns.
CudaResult Copy(Gpu& d, void* stream, const void* host, size_t size, std::function<Status()> copy) {
  if (!IsStream(d, stream)) return kInvalidHandle;
  Enqueue(d, stream, [&d, copy = std::move(copy)] {
    const Status status = copy();
    return status.ok() ? kCudaSuccess : Fault(kIllegalAddress, "copy: " + status.message());
  });
  if (host == nullptr || InPinned(d, host, size)) return kCudaSuccess;
  return RunUntil(d, d.next_work - 1);
}

int Architecture() {
  const int asked = static_cast<int>(FromEnvironment("INGOT_STANDIN_SM", 80));
  return LimitsOf(asked) != nullptr ? asked : 80;
}

int AttributeOf(const ArchitectureLimits& limits, int attribute) {
  switch (attribute) {
    case 1:
      return static_cast<int>(limits.threads_per_block);
    case 2:
    case 3:
      return 1024;
    case 4:
      return 64;
    case 5:
      return 2147483647;
    case 6:
    case 7:
      return 65535;
    case 8:
      return static_cast<int>(limits.shared_bytes_default);
    case 10:
      return kLanes;
    case 12:
      return static_cast<int>(limits.registers_per_block);
    case 16:
      return static_cast<int>(limits.multiprocessors);
    case 75:
      return limits.sm / 10;
    case 76:
      return limits.sm % 10;
    case 81:
      return static_cast<int>(limits.shared_bytes_per_sm);
    case 97:
      return static_cast<int>(limits.shared_bytes_optin);
    case 115:
      return 1;
    default:
      return -1;
  }
}

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

#define INGOT_ENTRY extern "C" __attribute__((visibility("default"))) CudaResult

INGOT_ENTRY cuInit(unsigned flags) {
  const auto initialize = [&](Gpu&) -> CudaResult {
    if (flags != 0) return kCudaInvalidValue;
    if (NumGpus() == 0) return kCudaNoDevice;
    TheDriver().initialized = true;
    return kCudaSuccess;
  };
  return Enter(initialize, false, false, false);
}
INGOT_ENTRY cuDriverGetVersion(int* version) {
  *version = DriverVersion();
  return kCudaSuccess;
}
INGOT_ENTRY cuGetErrorName(CudaResult error, const char** text) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return *text = row.name, kCudaSuccess;
  }
  return *text = nullptr, kCudaInvalidValue;
}
INGOT_ENTRY cuGetErrorString(CudaResult error, const char** text) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return *text = row.text, kCudaSuccess;
  }
  return *text = nullptr, kCudaInvalidValue;
}

// ---- devices and the context
INGOT_ENTRY cuDeviceGetCount(int* count) {
  return Enter([&](Gpu&) { return *count = NumGpus(), kCudaSuccess; }, false);
}
INGOT_ENTRY cuDeviceGet(CudaOrdinal* device, int index) {
  return Enter([&](Gpu&) { return *device = index, FindGpu(index) != nullptr ? kCudaSuccess : kInvalidDevice; }, false);
}
INGOT_ENTRY cuDeviceGetName(char* name, int size, CudaOrdinal device) {
  return Enter(
      [&](Gpu&) {
        return std::snprintf(name, static_cast<size_t>(size), "stand-in sm_%d", Architecture()),
               FindGpu(device) != nullptr ? kCudaSuccess : kInvalidDevice;
      },
      false);
}
INGOT_ENTRY cuDeviceGetAttribute(int* value, int attribute, CudaOrdinal device) {
  return Enter(
      [&](Gpu&) {
        if (FindGpu(device) == nullptr) return kInvalidDevice;
        *value = AttributeOf(*LimitsOf(Architecture()), attribute);
        return *value < 0 ? static_cast<CudaResult>(kCudaInvalidValue) : static_cast<CudaResult>(kCudaSuccess);
      },
      false);
}
INGOT_ENTRY cuDeviceTotalMem_v2(size_t* bytes, CudaOrdinal device) {
  return Enter(
      [&](Gpu&) {
        *bytes = static_cast<size_t>(MemoryBytes());
        return FindGpu(device) != nullptr ? kCudaSuccess : kInvalidDevice;
      },
      false);
}
INGOT_ENTRY cuDevicePrimaryCtxRetain(CudaContext* context, CudaOrdinal device) {
  return Enter(
      [&](Gpu&) -> CudaResult {
        Gpu* const gpu = FindGpu(device);
        if (gpu == nullptr) return kInvalidDevice;
        if (gpu->machine == nullptr) {
          MachineOptions options{.sm = Architecture()};
          options.memory_bytes = MemoryBytes();
          gpu->machine = std::make_unique<Machine>(options);
        }
        ++gpu->context_references;
        *context = reinterpret_cast<CudaContext>(gpu);
        return kCudaSuccess;
      },
      false);
}
INGOT_ENTRY cuDevicePrimaryCtxRelease_v2(CudaOrdinal device) {
  return Enter(
      [&](Gpu&) -> CudaResult {
        if (FindGpu(device) == nullptr || FindGpu(device)->context_references == 0) return kInvalidContext;
        Gpu& d = *FindGpu(device);
        if (--d.context_references > 0) return kCudaSuccess;
        // What the context held goes with it.
        d.queue.clear();
        d.streams.clear(), d.events.clear(), d.modules.clear(), d.pools.clear(), d.allocations.clear();
        d.graphs.clear(), d.graph_executables.clear();
        for (const auto& [memory, bytes] : d.pinned) std::free(memory);
        d.pinned.clear();
        d.machine.reset();
        d.sticky = 0;
        return kCudaSuccess;
      },
      false, true);
}
INGOT_ENTRY cuCtxPushCurrent_v2(CudaContext context) {
  return Enter(
      [&](Gpu&) -> CudaResult {
        for (Gpu& gpu : TheDriver().gpus) {
          if (gpu.machine == nullptr || context != reinterpret_cast<CudaContext>(&gpu)) continue;
          if (gpu.sticky != 0) return gpu.sticky;
          contexts_pushed.push_back(&gpu);
          return kCudaSuccess;
        }
        return kInvalidContext;
      },
      false, false);
}
INGOT_ENTRY cuCtxPopCurrent_v2(CudaContext* context) {
  return Enter(
      [&](Gpu& d) -> CudaResult {
        if (contexts_pushed.empty()) return kInvalidContext;
        contexts_pushed.pop_back();
        *context = reinterpret_cast<CudaContext>(&d);
        return kCudaSuccess;
      },
      false, true);
}

// ---- streams and events
INGOT_ENTRY cuStreamCreate(CudaStream* stream, unsigned flags) {
  return Enter([&](Gpu& d) -> CudaResult {
    if (flags != 0) return kCudaInvalidValue;  // streams that do not wait for the default one are not used
    auto state = std::make_unique<StreamState>();
    void* handle = state.get();
    d.streams.emplace(handle, std::move(state));
    *stream = static_cast<CudaStream>(handle);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuStreamDestroy_v2(CudaStream stream) {
  return Enter(
      [&](Gpu& d) -> CudaResult {
        if (d.streams.count(stream) == 0) return kInvalidHandle;
        const CudaResult result = RunUntil(d, LastWork(d, stream));
        d.streams.erase(stream);
        return result;
      },
      true, true);
}
INGOT_ENTRY cuStreamSynchronize(CudaStream stream) {
  return Enter(
      [&](Gpu& d) -> CudaResult { return IsStream(d, stream) ? RunUntil(d, LastWork(d, stream)) : kInvalidHandle; });
}
// The event may be destroyed before.
static void EnqueueRecord(Gpu& d, CudaStream stream, const std::shared_ptr<EventState>& state) {
  if (state->has_time) {
    Enqueue(d, stream, [state]() -> CudaResult {
      state->time = std::chrono::steady_clock::now();
      return kCudaSuccess;
    });
  }
  state->recorded_at = LastWork(d, stream);
}
INGOT_ENTRY cuEventCreate(CudaEvent* event, unsigned flags) {
  return Enter([&](Gpu& d) -> CudaResult {
    auto state = std::make_shared<EventState>();
    state->has_time = (flags & 2) == 0;
    void* handle = state.get();
    d.events.emplace(handle, std::move(state));
    *event = static_cast<CudaEvent>(handle);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuEventDestroy_v2(CudaEvent event) {
  return Enter([&](Gpu& d) -> CudaResult { return d.events.erase(event) != 0 ? kCudaSuccess : kInvalidHandle; }, true,
               true);
}
INGOT_ENTRY cuEventRecord(CudaEvent event, CudaStream stream) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.events.find(event);
    if (found == d.events.end() || !IsStream(d, stream)) return kInvalidHandle;
    EnqueueRecord(d, stream, found->second);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuEventSynchronize(CudaEvent event) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.events.find(event);
    return found == d.events.end() ? kInvalidHandle : RunUntil(d, found->second->recorded_at);
  });
}

INGOT_ENTRY cuEventElapsedTime(float* milliseconds, CudaEvent start, CudaEvent end) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto first = d.events.find(start), last = d.events.find(end);
    if (first == d.events.end() || last == d.events.end()) return kInvalidHandle;
    if (!first->second->has_time || !last->second->has_time || first->second->recorded_at == 0) return kInvalidHandle;
    if (!d.queue.empty() && d.queue.front().number <= last->second->recorded_at) return kNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(last->second->time - first->second->time).count();
    return kCudaSuccess;
  });
}

// ---- memory
INGOT_ENTRY cuMemPoolCreate(CudaPool* pool, const CudaPoolProperties* properties) {
  return Enter([&](Gpu& d) -> CudaResult {
    if (properties->allocation_type != 1 || properties->location_type != 1 || FindGpu(properties->location_id) != &d)
      return kCudaInvalidValue;
    auto state = std::make_unique<PoolState>();
    void* handle = state.get();
    d.pools.emplace(handle, std::move(state));
    *pool = static_cast<CudaPool>(handle);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuMemPoolDestroy(CudaPool pool) {
  return Enter([&](Gpu& d) -> CudaResult { return d.pools.erase(pool) != 0 ? kCudaSuccess : kInvalidHandle; }, true,
               true);
}
INGOT_ENTRY cuMemPoolSetAttribute(CudaPool pool, int attribute, void* value) {
  return Enter([&](Gpu& d) -> CudaResult {
    return d.pools.count(pool) != 0 && attribute == kCudaPoolReleaseThreshold && value != nullptr ? kCudaSuccess
                                                                                                  : kCudaInvalidValue;
  });
}
INGOT_ENTRY cuMemAllocFromPoolAsync(CudaPointer* pointer, size_t size_bytes, CudaPool pool, CudaStream stream) {
  return Enter([&](Gpu& d) -> CudaResult {
    if (d.pools.count(pool) == 0 || !IsStream(d, stream)) return kInvalidHandle;
    if (size_bytes == 0) return kCudaInvalidValue;
    if (size_bytes > static_cast<size_t>(INT64_MAX)) return kCudaOutOfMemory;
    const Result<uint64_t> address = d.machine->Allocate(static_cast<int64_t>(size_bytes));
    if (!address.ok()) return kCudaOutOfMemory;
    *pointer = *address;
    d.allocations.insert(*address);
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuMemFreeAsync(CudaPointer pointer, CudaStream stream) {
  return Enter(
      [&](Gpu& d) -> CudaResult {
        if (!IsStream(d, stream)) return kInvalidHandle;
        if (d.allocations.erase(pointer) == 0) return kCudaInvalidValue;
        Enqueue(d, stream, [&d, pointer] { return d.machine->Free(pointer).ok() ? kCudaSuccess : kCudaInvalidValue; });
        return kCudaSuccess;
      },
      true, true);
}
INGOT_ENTRY cuMemHostAlloc(void** pointer, size_t size_bytes, unsigned) {
  return Enter([&](Gpu& d) -> CudaResult {
    *pointer = std::malloc(size_bytes);
    if (*pointer == nullptr) return kCudaOutOfMemory;
    d.pinned[*pointer] = size_bytes;
    return kCudaSuccess;
  });
}
INGOT_ENTRY cuMemFreeHost(void* pointer) {
  return Enter(
      [&](Gpu& d) -> CudaResult {
        if (d.pinned.erase(pointer) == 0) return kCudaInvalidValue;
        const CudaResult result = RunUntil(d, d.next_work);
        std::free(pointer);
        return result;
      },
      true, true);
}
INGOT_ENTRY cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from, size_t size_bytes, CudaStream stream) {
  return Enter([&](Gpu& d) {
    return Copy(d, stream, from, size_bytes,
                [&d, to, from, size_bytes] { return d.machine->Write(to, from, static_cast<int64_t>(size_bytes)); });
  });
}
INGOT_ENTRY cuMemcpyDtoHAsync_v2(void* to, CudaPointer from, size_t size_bytes, CudaStream stream) {
  return Enter([&](Gpu& d) {
    return Copy(d, stream, to, size_bytes, [&d, to, from, size_bytes] {
      return d.machine->Read(to, from, static_cast<int64_t>(size_bytes), false);
    });
  });
}
INGOT_ENTRY cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t size_bytes, CudaStream stream) {
  return Enter([&](Gpu& d) {
    return Copy(d, stream, nullptr, size_bytes, [&d, to, from, size_bytes] {
      return d.machine->memory().Copy(to, from, static_cast<int64_t>(size_bytes));
    });
  });
}

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
        static_cast<void>(RunUntil(d, d.next_work));
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
INGOT_ENTRY cuFuncGetParamInfo(CudaFunction function, size_t index, size_t* offset, size_t* size_bytes) {
  return Enter([&](Gpu& d) -> CudaResult {
    const FunctionState* state = AsFunction(d, function);
    if (state == nullptr) return kInvalidHandle;
    const std::vector<int64_t>& sizes = state->facts.param_sizes;
    if (index >= sizes.size()) return kCudaInvalidValue;
    size_t at = 0;
    for (size_t k = 0; k <= index; ++k) {
      const auto size = static_cast<size_t>(sizes[k]);
      *offset = at = (at + size - 1) / size * size;  // each is aligned to its size
      at += * size_bytes = size;
    }
    return kCudaSuccess;
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

#define INGOT_CONTROL extern "C" __attribute__((visibility("default")))

INGOT_CONTROL void standin_fail_call(int64_t call, int error, int for_ever) {
  Driver& d = TheDriver();
  std::lock_guard lock(d.mutex);
  d.calls = 0;
  d.fail_at = call, d.fail_with = error, d.fail_on = for_ever != 0;
}
INGOT_CONTROL int64_t standin_calls() { return TheDriver().calls; }
INGOT_CONTROL const char* standin_last_fault() { return TheDriver().last_fault.c_str(); }
INGOT_CONTROL int64_t standin_live_objects() {
  Driver& driver = TheDriver();
  std::lock_guard lock(driver.mutex);
  int64_t live = 0;
  for (const Gpu& d : driver.gpus) {
    live +=
        static_cast<int64_t>(d.streams.size() + d.events.size() + d.modules.size() + d.pools.size() + d.pinned.size() +
                             d.allocations.size() + d.graphs.size() + d.graph_executables.size()) +
        d.context_references;
  }
  return live;
}

// The entry points by name, as newer programs look them up.
INGOT_ENTRY cuGetProcAddress_v2(const char* symbol, void** pointer, int, uint64_t, int* status) {
  struct Entry {
    const char* name;
    void* pointer;
  };
  static const Entry entries[] = {
#define INGOT_CUDA_CALL(member, symbol, parameters) {#symbol, reinterpret_cast<void*>(symbol)},
#define INGOT_CUDA_LATER_CALL INGOT_CUDA_CALL
#include "runtime/cuda_driver.def"
  };
  for (const Entry& entry : entries) {
    const std::string_view name = entry.name;
    if (name != symbol && !(name.ends_with("_v2") && name.substr(0, name.size() - 3) == symbol)) continue;
    *pointer = entry.pointer;
    if (status != nullptr) *status = 0;
    return kCudaSuccess;
  }
  *pointer = nullptr;
  if (status != nullptr) *status = 1;
  return kCudaNotFound;
}
