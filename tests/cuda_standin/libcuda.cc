// libcuda.so.1 over a Machine: the driver entry points that Ingot uses, with the driver's rules. Work is queued by stream
// and runs when somebody waits for it, and of other streams only what it has to wait for, or, if a test asks for that, what
// may run in streams of their own runs in front of everything else: memory that is reused too early, and streams that are
// not ordered, show; a fault of a kernel loses the
// context, and every later call returns the same error until the primary context is released (a GPU's driver
// returns it for good: observed on an H200 with driver 580). Live objects are
// counted, and any call can be made to fail (standin_control.h).
//
// Environment: INGOT_STANDIN_SM names the architecture (80 without), INGOT_STANDIN_DEVICES says how many GPUs there are
// (1), INGOT_STANDIN_MEMORY how many bytes each has, INGOT_STANDIN_DRIVER the driver's version (12040: CUDA 12.4);
// INGOT_STANDIN_QUIET=1 keeps the explanation of a fault off standard error.
#include "tests/cuda_standin/driver_state.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "tests/cuda_standin/standin_control.h"

namespace ingot::ptx {

Driver& TheDriver() {
  static Driver driver;
  return driver;
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

CudaResult RunUntil(Gpu& d, const WorkPlace& place) {
  std::deque<Gpu::Work>& queue = d.queues[place.stream];
  while (!queue.empty() && queue.front().number <= place.number) {
    const Gpu::Work work = std::move(queue.front());
    for (const WorkPlace& before : work.after) RunUntil(d, before);
    queue.pop_front();
    if (d.sticky != 0) continue;
    d.sticky = work.run();
  }
  return d.sticky;
}

CudaResult RunAll(Gpu& d) {
  for (auto& [stream, queue] : d.queues) RunUntil(d, {stream, d.next_work});
  return d.sticky;
}

WorkPlace LastWork(const Gpu& d, void* stream) {
  const auto found = d.queues.find(stream);
  return {stream, found == d.queues.end() || found->second.empty() ? 0 : found->second.back().number};
}

// The default stream waits for all streams but those that are made not to, and they for it.
void Enqueue(Gpu& d, void* stream, std::function<CudaResult()> run, std::vector<WorkPlace> after) {
  const auto waits_for_default = [&](void* one) { return one != nullptr && d.streams.at(one)->waits_for_default; };
  for (const auto& [other, queue] : d.queues) {
    if (queue.empty() || other == stream) continue;
    if (stream == nullptr ? waits_for_default(other) : other == nullptr && waits_for_default(stream)) {
      after.push_back(LastWork(d, other));
    }
  }
  d.queues[stream].push_back({d.next_work++, std::move(after), std::move(run)});
  if (!TheDriver().runs_ahead) return;
  // Whatever can run in streams of their own does, in front of everything else.
  const auto is_done = [&](const WorkPlace& place) {
    const auto found = d.queues.find(place.stream);
    return found == d.queues.end() || found->second.empty() || found->second.front().number > place.number;
  };
  for (auto& [other, queue] : d.queues) {
    if (other == nullptr || waits_for_default(other)) continue;
    while (!queue.empty() && std::ranges::all_of(queue.front().after, is_done)) {
      RunUntil(d, {other, queue.front().number});
    }
  }
}

bool IsThere(const Gpu& d, uint64_t address) {
  const auto next = d.not_yet_there.upper_bound(address);
  if (next == d.not_yet_there.begin()) return true;
  const auto& [start, size] = *std::prev(next);
  return address - start >= size;
}

CudaResult Fault(CudaResult error, const std::string& why) {
  TheDriver().last_fault = why;
  if (std::getenv("INGOT_STANDIN_QUIET") == nullptr) std::fprintf(stderr, "cuda stand-in: %s\n", why.c_str());
  return error;
}

int DriverVersion() { return static_cast<int>(FromEnvironment("INGOT_STANDIN_DRIVER", 12040)); }

bool IsStream(const Gpu& d, void* stream) { return stream == nullptr || d.streams.count(stream) != 0; }

void EnqueueRecord(Gpu& d, CudaStream stream, const std::shared_ptr<EventState>& state) {
  Enqueue(d, stream, [state]() -> CudaResult {
    state->time = std::chrono::steady_clock::now();
    return kCudaSuccess;
  });
  state->recorded = {stream, d.next_work - 1};
}

namespace {

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

int NumGpus() {
  return static_cast<int>(std::clamp<int64_t>(FromEnvironment("INGOT_STANDIN_DEVICES", 1), 0, kMaxGpus));
}
int64_t MemoryBytes() { return FromEnvironment("INGOT_STANDIN_MEMORY", MachineOptions().memory_bytes); }
// Null: there is no such device.
Gpu* FindGpu(CudaOrdinal device) { return device >= 0 && device < NumGpus() ? &TheDriver().gpus[device] : nullptr; }

bool InPinned(const Gpu& d, const void* host, size_t size) {
  const auto address = reinterpret_cast<uintptr_t>(host);
  for (const auto& [start, bytes] : d.pinned) {
    const auto base = reinterpret_cast<uintptr_t>(start);
    if (address >= base && size <= bytes && address - base <= bytes - size) return true;
  }
  return false;
}

// A copy; one that touches pageable memory of the host is done when the call returns.
CudaResult Copy(Gpu& d, void* stream, const void* host, size_t size, std::vector<uint64_t> addresses,
                std::function<Status()> copy) {
  if (!IsStream(d, stream)) return kInvalidHandle;
  Enqueue(d, stream, [&d, addresses = std::move(addresses), copy = std::move(copy)] {
    if (!std::ranges::all_of(addresses, [&](uint64_t address) { return IsThere(d, address); })) {
      return Fault(kIllegalAddress, "copy: memory that is not allocated yet");
    }
    const Status status = copy();
    return status.ok() ? kCudaSuccess : Fault(kIllegalAddress, "copy: " + status.message());
  });
  if (host == nullptr || InPinned(d, host, size)) return kCudaSuccess;
  return RunUntil(d, {stream, d.next_work - 1});
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

}  // namespace
}  // namespace ingot::ptx

using namespace ingot;       // NOLINT: the entry points are C
using namespace ingot::ptx;  // NOLINT

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
        d.queues.clear(), d.not_yet_there.clear();
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
    constexpr unsigned kNonBlocking = 1;
    if (flags > kNonBlocking) return kCudaInvalidValue;
    auto state = std::make_unique<StreamState>(StreamState{flags != kNonBlocking});
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
        d.queues.erase(stream);
        d.streams.erase(stream);
        return result;
      },
      true, true);
}
// Of the default stream: those that it waits for, too.
INGOT_ENTRY cuStreamSynchronize(CudaStream stream) {
  return Enter([&](Gpu& d) -> CudaResult {
    if (!IsStream(d, stream)) return kInvalidHandle;
    for (const auto& [other, state] : d.streams) {
      if (stream == nullptr && state->waits_for_default) RunUntil(d, LastWork(d, other));
    }
    return RunUntil(d, LastWork(d, stream));
  });
}
INGOT_ENTRY cuStreamWaitEvent(CudaStream stream, CudaEvent event, unsigned flags) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto found = d.events.find(event);
    if (found == d.events.end() || !IsStream(d, stream)) return kInvalidHandle;
    if (flags != 0) return kCudaInvalidValue;
    if (found->second->recorded.number == 0) return kCudaSuccess;
    Enqueue(d, stream, []() -> CudaResult { return kCudaSuccess; }, {found->second->recorded});
    return kCudaSuccess;
  });
}
// The event may be destroyed before.
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
    return found == d.events.end() ? kInvalidHandle : RunUntil(d, found->second->recorded);
  });
}

INGOT_ENTRY cuEventElapsedTime(float* milliseconds, CudaEvent start, CudaEvent end) {
  return Enter([&](Gpu& d) -> CudaResult {
    const auto first = d.events.find(start), last = d.events.find(end);
    if (first == d.events.end() || last == d.events.end()) return kInvalidHandle;
    if (!first->second->has_time || !last->second->has_time || first->second->recorded.number == 0) {
      return kInvalidHandle;
    }
    const WorkPlace& recorded = last->second->recorded;
    const auto& queue = d.queues[recorded.stream];
    if (!queue.empty() && queue.front().number <= recorded.number) return kNotReady;
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
    d.not_yet_there[*address] = size_bytes;
    Enqueue(d, stream, [&d, address = *address] { return d.not_yet_there.erase(address), kCudaSuccess; });
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
        const CudaResult result = RunAll(d);
        std::free(pointer);
        return result;
      },
      true, true);
}
INGOT_ENTRY cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from, size_t size_bytes, CudaStream stream) {
  return Enter([&](Gpu& d) {
    return Copy(d, stream, from, size_bytes, {to},
                [&d, to, from, size_bytes] { return d.machine->Write(to, from, static_cast<int64_t>(size_bytes)); });
  });
}
INGOT_ENTRY cuMemcpyDtoHAsync_v2(void* to, CudaPointer from, size_t size_bytes, CudaStream stream) {
  return Enter([&](Gpu& d) {
    return Copy(d, stream, to, size_bytes, {from}, [&d, to, from, size_bytes] {
      return d.machine->Read(to, from, static_cast<int64_t>(size_bytes), false);
    });
  });
}
INGOT_ENTRY cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t size_bytes, CudaStream stream) {
  return Enter([&](Gpu& d) {
    return Copy(d, stream, nullptr, size_bytes, {to, from}, [&d, to, from, size_bytes] {
      return d.machine->memory().Copy(to, from, static_cast<int64_t>(size_bytes));
    });
  });
}

#define INGOT_CONTROL extern "C" __attribute__((visibility("default")))

INGOT_CONTROL void standin_fail_call(int64_t call, int error, int for_ever) {
  Driver& d = TheDriver();
  std::lock_guard lock(d.mutex);
  d.calls = 0;
  d.fail_at = call, d.fail_with = error, d.fail_on = for_ever != 0;
}
INGOT_CONTROL void standin_run_ahead(int on) { TheDriver().runs_ahead = on != 0; }
INGOT_CONTROL int64_t standin_calls() { return TheDriver().calls; }
INGOT_CONTROL int64_t standin_known_modules() { return TheDriver().known_modules; }
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
#define INGOT_CUDA_CALL(member, symbol, parameters) INGOT_ENTRY symbol parameters;
#define INGOT_CUDA_LATER_CALL INGOT_CUDA_CALL
#include "runtime/cuda_driver.def"
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
