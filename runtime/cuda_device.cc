// Memory is allocated and freed on the default stream. Streams made here are blocking ones (flag 0): what is queued on
// them runs after all earlier work of the default stream, and the default stream's after theirs, so that a block may be
// used on every stream and is free only when all work queued before has ended.
//
// Copies from and to the host: cuda_copies.h.
//
// Launches wait in a queue (cuda_launches.h), which is given to the driver before anything that is ordered behind them:
// copies, frees, other streams, and whoever waits.
#include "runtime/cuda_device.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda_copies.h"
#include "runtime/cuda_driver.h"
#include "runtime/cuda_launches.h"
#include "runtime/ptx_text.h"

namespace ingot {
namespace {

class CudaDevice;

constexpr unsigned kEventWithTime = 0, kEventWithoutTime = 2;

// Makes the device's context the calling thread's for a scope.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, CudaContext context)
      : driver_(driver), result_(driver.CtxPushCurrent(context)) {}
  ~CurrentContext() {
    CudaContext popped = nullptr;
    if (result_ == kCudaSuccess) static_cast<void>(driver_.CtxPopCurrent(&popped));
  }
  CurrentContext(const CurrentContext&) = delete;
  CudaResult result() const { return result_; }

 private:
  const CudaDriver& driver_;
  CudaResult result_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int32_t index, const CudaOptions& options, Ref<CudaDriver> driver)
      : driver_(std::move(driver)),
        index_(index),
        limit_bytes_(options.memory_limit_bytes),
        copies_(*driver_),
        queue_(*driver_) {}
  ~CudaDevice() override;
  Status Initialize(int64_t kept_bytes);

  DeviceId id() const override { return {DeviceKind::kCuda, index_}; }
  std::string_view description() const override { return description_; }
  bool launches_kernels() const override { return true; }
  bool RunsCodeFor(std::string_view architecture, CodeForm form) const override;

  Result<void*> Allocate(int64_t size_bytes) override;
  void Free(void* data, int64_t size_bytes) override;
  Result<Stream> CreateStream() override;
  void DestroyStream(Stream stream) override;
  void UseThreads(ThreadPool* threads) override { copies_.UseThreads(threads); }
  Status CopyFromHost(void* to, const void* from, int64_t size_bytes, Stream stream) override {
    return Copy(Way::kFromHost, to, from, size_bytes, stream);
  }
  Status CopyFromHostLater(void* to, const void* from, int64_t size_bytes) override {
    constexpr int64_t kLeastBytes = int64_t{1} << 20;  // of a copy that takes longer than what it needs of the driver
    return Copy(size_bytes < kLeastBytes ? Way::kFromHost : Way::kLater, to, from, size_bytes, {});
  }
  void ForgetCopies() override;
  Status CopyToHost(void* to, const void* from, int64_t size_bytes, Stream stream) override {
    return Copy(Way::kToHost, to, from, size_bytes, stream);
  }
  Status CopyWithin(void* to, const void* from, int64_t size_bytes, Stream stream) override {
    return Copy(Way::kWithin, to, from, size_bytes, stream);
  }
  Status Synchronize(Stream stream) override;
  Result<Ref<DeviceImage>> LoadImage(std::span<const uint8_t> image) override;
  Status LaunchKernel(void* kernel, const LaunchConfig& config, std::span<void* const> buffers,
                      std::span<const int64_t> ints, Stream stream) override;
  Status StartTimer() override;
  Result<int64_t> StopTimer() override;

  const CudaDriver& driver() const { return *driver_; }
  CudaContext context() const { return context_; }
  // Success, or a status that names the device and the call; remembers that the context is lost.
  Status Check(CudaResult result, const char* call);
  Status Check(const CudaOutcome& outcome) { return Check(outcome.result, outcome.call); }
  // The failure of a device whose context is lost; ok before.
  Status Usable();
  // num_arguments: those that the code takes, and a launch has to have; -1: unknown.
  void AddKernel(CudaFunction kernel, std::string_view name, int64_t num_arguments);
  // Kernels go: what waits is launched first, and no graph of theirs is kept.
  void RemoveKernels(const CurrentContext& current, std::span<const CudaFunction> kernels);

 private:
  static CudaStream Handle(Stream stream) { return static_cast<CudaStream>(stream.handle); }
  static CudaPointer Address(const void* data) { return reinterpret_cast<uintptr_t>(data); }
  // Behind the flush that reaches each multiple of so many launches stands a mark, and the one before the last is waited
  // for before the next: a caller who stops launching (a deadline, Ctrl-C) has less than five times as many before it that
  // have not run.
  static constexpr int64_t kLaunchesPerMark = 32;
  struct LaunchMark {
    CudaEvent event = nullptr;
    bool is_recorded = false;
  };
  // Gives the launches that wait to the driver, in front of whatever is ordered behind them. None waits any longer after
  // a failure.
  Status FlushLocked(const CurrentContext& current, CudaStream stream = nullptr);
  // The same where nobody can be told of a failure: the next one who flushes is.
  void FlushSilently(const CurrentContext& current);
  CudaOutcome BoundLaunches(int64_t num_launches);
  Status FlushTimed();
  // Until the timer is the calling thread's, or nobody's.
  void AwaitTimer(std::unique_lock<std::mutex>& lock) {
    timer_stops_.wait(
        lock, [&] { return timer_thread_ == std::thread::id() || timer_thread_ == std::this_thread::get_id(); });
  }
  Status Refuse(CudaFunction kernel, Text why) const;
  Status Named(CudaFunction kernel, Status status) const;
  enum class Way { kFromHost, kLater, kToHost, kWithin };
  Status Copy(Way way, void* to, const void* from, int64_t size_bytes, Stream stream);
  Status Check(const CudaLaunchQueue::Outcome& outcome);
  // The same in front of what uses these addresses (none: any), and the copies that are put off and write there run.
  Status FlushFor(const CurrentContext& current, std::span<void* const> addresses);
  Status FlushForLocked(const CurrentContext& current, std::span<void* const> addresses);
  Status OutOfMemory(int64_t size_bytes) const {
    return Status::OutOfMemory({"cuda:", index_, ": out of memory: ", size_bytes, " bytes requested"});
  }

  Ref<CudaDriver> driver_;
  int32_t index_;
  int64_t limit_bytes_;
  CudaOrdinal ordinal_ = 0;
  CudaContext context_ = nullptr;
  CudaPool pool_ = nullptr;
  std::string description_;
  int max_shared_bytes_ = 0;
  int capability_ = 0;  // 10 * major + minor

  std::mutex mutex_;  // of what follows
  int64_t live_bytes_ = 0;
  std::string lost_;  // what lost the context; empty while it is alive
  CudaCopies copies_;
  std::mutex launch_mutex_;  // of what follows, and of copies that are put off
  CudaLaunchQueue queue_;
  struct Kernel {
    std::string name;
    int64_t allowed_shared = 0;  // bytes beside those of its own variables
    int64_t num_arguments = -1;  // of 8 bytes each, that the code takes; -1: unknown
  };
  std::map<CudaFunction, Kernel> kernels_;
  Status failure_;  // of a flush that nobody was told of
  int64_t num_launches_ = 0;
  // Of the timer: events before and behind each flush while it runs, and the time between them so far. It is the thread's
  // that started it, and launches of others wait: they would be timed, too.
  CudaEvent timer_[2] = {};
  std::thread::id timer_thread_;  // none: it does not run
  std::condition_variable timer_stops_;
  double timed_ms_ = 0;
  LaunchMark marks_[2];
};

// The code of one module, and the kernels that were asked for.
class CudaImage final : public DeviceImage {
 public:
  CudaImage(CudaDevice& device, CudaModule module, NumArguments num_arguments)
      : device_(device), module_(module), num_arguments_(std::move(num_arguments)) {}
  ~CudaImage() override {
    const CurrentContext current(device_.driver(), device_.context());
    device_.RemoveKernels(current, kernels_);
    static_cast<void>(device_.driver().ModuleUnload(module_));  // fails when the context is lost, and is gone with it
  }
  Result<void*> FindKernel(std::string_view name) override {
    INGOT_RETURN_IF_ERROR(device_.Usable());
    const CurrentContext current(device_.driver(), device_.context());
    CudaFunction function = nullptr;
    CudaOutcome outcome{current.result(), "cuCtxPushCurrent"};
    if (outcome.ok()) {
      outcome = {device_.driver().ModuleGetFunction(&function, module_, std::string(name).c_str()),
                 "cuModuleGetFunction"};
    }
    if (outcome.result == kCudaNotFound) {
      return Status(StatusCode::kNotFound, {device_.id().ToString(), ": the image has no kernel \"", name, "\""});
    }
    INGOT_RETURN_IF_ERROR(device_.Check(outcome));
    const auto known = num_arguments_.find(name);
    if (known != num_arguments_.end() && known->second < 0) {
      return Status(StatusCode::kUnsupportedFile, {device_.id().ToString(), ": argument ", -1 - known->second, " of \"",
                                                   name, "\" is no number of 8 bytes"});
    }
    device_.AddKernel(function, name, known == num_arguments_.end() ? -1 : known->second);
    kernels_.push_back(function);
    return static_cast<void*>(function);
  }

 private:
  CudaDevice& device_;
  CudaModule module_;
  NumArguments num_arguments_;
  std::vector<CudaFunction> kernels_;
};

Status CudaDevice::Check(CudaResult result, const char* call) {
  if (result == kCudaSuccess) return Status();
  const std::string why = StrCat({call, ": ", driver_->Explain(result)});
  if (CudaDriver::LosesContext(result)) {
    std::lock_guard lock(mutex_);
    if (lost_.empty()) lost_ = why;
    return Status(StatusCode::kFailed, {"cuda:", index_, ": ", why, ": the context is lost"});
  }
  const StatusCode code = result == kCudaOutOfMemory ? StatusCode::kOutOfMemory : StatusCode::kFailed;
  return Status(code, {"cuda:", index_, ": ", why});
}

Status CudaDevice::Usable() {
  std::lock_guard lock(mutex_);
  if (lost_.empty()) return Status();
  return Status(StatusCode::kFailed, {"cuda:", index_, ": the context was lost: ", lost_,
                                      "; no process that met such a fault can use the GPU again"});
}

Status CudaDevice::Initialize(int64_t kept_bytes) {
  int count = 0;
  const CudaResult counted = driver_->DeviceGetCount(&count);
  if (counted != kCudaSuccess || index_ < 0 || index_ >= count) {
    return Status(StatusCode::kNotFound,
                  {"cuda:", index_, ": no such device; there ", count == 1 ? "is " : "are ", count});
  }
  int pools = 0, major = 0, minor = 0;
  char name[128] = {};
  const auto ask = [&]() -> CudaOutcome {
    INGOT_CUDA_TRY(driver_->DeviceGet(&ordinal_, index_), "cuDeviceGet");
    const std::pair<int, int*> attributes[] = {{kCudaPoolsSupported, &pools},
                                               {kCudaCapabilityMajor, &major},
                                               {kCudaCapabilityMinor, &minor},
                                               {kCudaMaxSharedBytes, &max_shared_bytes_}};
    for (const auto& [which, value] : attributes) {
      INGOT_CUDA_TRY(driver_->DeviceGetAttribute(value, which, ordinal_), "cuDeviceGetAttribute");
    }
    return {driver_->DeviceGetName(name, sizeof(name) - 1, ordinal_), "cuDeviceGetName"};
  };
  INGOT_RETURN_IF_ERROR(Check(ask()));
  if (pools == 0) return Status(StatusCode::kNotFound, {"cuda:", index_, ": the device has no pools of memory"});
  capability_ = 10 * major + minor;
  description_ = StrCat({name, ", compute capability ", major, ".", minor, ", driver for ", driver_->VersionText()});
  const auto open = [&]() -> CudaOutcome {
    INGOT_CUDA_TRY(driver_->PrimaryCtxRetain(&context_, ordinal_), "cuDevicePrimaryCtxRetain");
    const CurrentContext current(*driver_, context_);
    INGOT_CUDA_TRY(current.result(), "cuCtxPushCurrent");
    CudaPoolProperties properties;
    properties.location_id = ordinal_;
    INGOT_CUDA_TRY(driver_->MemPoolCreate(&pool_, &properties), "cuMemPoolCreate");
    auto kept = static_cast<uint64_t>(kept_bytes);
    return {driver_->MemPoolSetAttribute(pool_, kCudaPoolReleaseThreshold, &kept), "cuMemPoolSetAttribute"};
  };
  return Check(open());
}

// What fails here fails since the context is lost, and is gone with it.
CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  {
    const CurrentContext current(*driver_, context_);
    FlushSilently(current);
    static_cast<void>(driver_->StreamSynchronize(nullptr));
    queue_.DropGraphs();
    copies_.Destroy();
    for (const LaunchMark& mark : marks_) {
      if (mark.event != nullptr) static_cast<void>(driver_->EventDestroy(mark.event));
    }
    for (CudaEvent event : timer_) {
      if (event != nullptr) static_cast<void>(driver_->EventDestroy(event));
    }
    if (pool_ != nullptr) static_cast<void>(driver_->MemPoolDestroy(pool_));
  }
  static_cast<void>(driver_->PrimaryCtxRelease(ordinal_));
}

// ---- memory

Result<void*> CudaDevice::Allocate(int64_t size_bytes) {
  INGOT_RETURN_IF_ERROR(Usable());
  const int64_t bytes = size_bytes > 0 ? size_bytes : 1;
  {
    std::lock_guard lock(mutex_);
    if (size_bytes < 0 || bytes > limit_bytes_ - live_bytes_) return OutOfMemory(size_bytes);
    live_bytes_ += bytes;
  }
  const CurrentContext current(*driver_, context_);
  CudaPointer pointer = 0;
  CudaResult result = current.result();
  const char* call = "cuCtxPushCurrent";
  if (result == kCudaSuccess) {
    call = "cuMemAllocFromPoolAsync";
    result = driver_->MemAllocFromPool(&pointer, static_cast<size_t>(bytes), pool_, nullptr);
  }
  if (result != kCudaSuccess) {
    {
      std::lock_guard lock(mutex_);
      live_bytes_ -= bytes;
    }
    return result == kCudaOutOfMemory ? OutOfMemory(size_bytes) : Check(result, call);
  }
  return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer));
}

void CudaDevice::Free(void* data, int64_t size_bytes) {
  const CurrentContext current(*driver_, context_);
  FlushSilently(current);
  static_cast<void>(Check(driver_->MemFreeAsync(Address(data), nullptr), "cuMemFreeAsync"));
  std::lock_guard lock(mutex_);
  live_bytes_ -= size_bytes > 0 ? size_bytes : 1;
}

// ---- streams

Result<Stream> CudaDevice::CreateStream() {
  INGOT_RETURN_IF_ERROR(Usable());
  const CurrentContext current(*driver_, context_);
  CudaStream stream = nullptr;
  const auto create = [&]() -> CudaOutcome {
    INGOT_CUDA_TRY(current.result(), "cuCtxPushCurrent");
    return {driver_->StreamCreate(&stream, 0), "cuStreamCreate"};
  };
  INGOT_RETURN_IF_ERROR(Check(create()));
  return Stream{stream};
}

void CudaDevice::DestroyStream(Stream stream) {
  if (stream.handle == nullptr) return;
  const CurrentContext current(*driver_, context_);
  static_cast<void>(Check(driver_->StreamDestroy(Handle(stream)), "cuStreamDestroy"));
}

Status CudaDevice::Synchronize(Stream stream) {
  INGOT_RETURN_IF_ERROR(Usable());
  const CurrentContext current(*driver_, context_);
  INGOT_RETURN_IF_ERROR(FlushFor(current, {}));
  INGOT_RETURN_IF_ERROR(Check(driver_->StreamSynchronize(Handle(stream)), "cuStreamSynchronize"));
  std::lock_guard lock(launch_mutex_);
  queue_.SetIdle();
  return Status();
}

// ---- copies

Status CudaDevice::Copy(Way way, void* to, const void* from, int64_t size_bytes, Stream stream) {
  INGOT_RETURN_IF_ERROR(Usable());
  if (size_bytes == 0) return Status();
  const CurrentContext current(*driver_, context_);
  void* const used[] = {to, const_cast<void*>(from)};
  std::unique_lock lock(launch_mutex_);
  INGOT_RETURN_IF_ERROR(FlushForLocked(current, used));
  const auto run = [&]() -> CudaOutcome {
    if (way == Way::kLater) return copies_.PutOff(context_, Address(to), from, size_bytes);
    lock.unlock();
    if (way == Way::kFromHost) return copies_.FromHost(context_, Address(to), from, size_bytes, Handle(stream));
    if (way == Way::kToHost) return copies_.ToHost(context_, to, Address(from), size_bytes, Handle(stream));
    return {driver_->CopyDeviceToDevice(Address(to), Address(from), static_cast<size_t>(size_bytes), Handle(stream)),
            "cuMemcpyDtoDAsync"};
  };
  return Check(run());
}

void CudaDevice::ForgetCopies() {
  std::lock_guard lock(launch_mutex_);
  copies_.Forget();
}

// ---- code

// PTX for an architecture runs on all later ones, a cubin on those of the same major version, unless it is for that one
// alone (sm_90a).
bool CudaDevice::RunsCodeFor(std::string_view architecture, CodeForm form) const {
  if (!architecture.starts_with("sm_")) return false;
  architecture.remove_prefix(3);
  int wanted = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto [rest, error] = std::from_chars(architecture.data(), end, wanted);
  if (error != std::errc()) return false;
  if (std::string_view(rest, end) == "a") return capability_ == wanted;
  const bool is_kin = form == CodeForm::kPortable || capability_ / 10 == wanted / 10;
  return rest == end && capability_ >= wanted && is_kin;
}

Result<Ref<DeviceImage>> CudaDevice::LoadImage(std::span<const uint8_t> image) {
  INGOT_RETURN_IF_ERROR(Usable());
  const CurrentContext current(*driver_, context_);
  INGOT_RETURN_IF_ERROR(Check(current.result(), "cuCtxPushCurrent"));
  // PTX is a text with a zero behind it; a cubin says itself how long it is.
  const std::string bytes(reinterpret_cast<const char*>(image.data()), image.size());
  char log[4096] = {};
  int options[] = {kCudaJitErrorLog, kCudaJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log) - 1)};
  CudaModule module = nullptr;
  const CudaResult result = driver_->ModuleLoad(&module, bytes.c_str(), 2, options, values);
  if (result != kCudaSuccess) {
    // Drivers say of machine code of a later toolkit that it is invalid.
    const bool is_machine_code = bytes.starts_with(
        "\x7f"
        "ELF");
    const bool cannot = result == kCudaNoBinaryForGpu || (result == kCudaInvalidImage && is_machine_code);
    if (result == kCudaUnsupportedPtxVersion) {
      return Status(StatusCode::kUnsupportedFile,
                    {"cuda:", index_, ": the driver, one for ", driver_->VersionText(), ", is too old for the code (",
                     PtxVersionOf(bytes), "): ", driver_->Explain(result)});
    }
    if (result == kCudaOutOfMemory || CudaDriver::LosesContext(result)) return Check(result, "cuModuleLoadDataEx");
    return Status(cannot ? StatusCode::kUnsupportedFile : StatusCode::kFailed,
                  {"cuda:", index_, ": cuModuleLoadDataEx: ", driver_->Explain(result), log[0] != '\0' ? ": " : "",
                   static_cast<const char*>(log)});
  }
  auto* loaded = new (std::nothrow) CudaImage(*this, module, ArgumentsOf(bytes));
  if (loaded == nullptr) {
    static_cast<void>(driver_->ModuleUnload(module));
    return Status::OutOfMemory();
  }
  return Ref<DeviceImage>::Adopt(loaded);
}

Status CudaDevice::LaunchKernel(void* kernel, const LaunchConfig& config, std::span<void* const> buffers,
                                std::span<const int64_t> ints, Stream stream) {
  INGOT_RETURN_IF_ERROR(Usable());
  const auto function = static_cast<CudaFunction>(kernel);
  std::unique_lock lock(launch_mutex_);
  AwaitTimer(lock);
  constexpr int64_t kMaxBlock[3] = {1024, 1024, 64}, kMaxGrid[3] = {INT32_MAX, 65535, 65535};
  for (int k = 0; k < 3; ++k) {
    if (config.grid[k] < 0 || config.grid[k] > kMaxGrid[k] || config.block[k] < 1 || config.block[k] > kMaxBlock[k]) {
      return Refuse(function,
                    {"a launch of ", config.grid[k], " blocks of ", config.block[k], " threads along axis ", k});
    }
    if (config.grid[k] == 0) return Status();  // nothing to compute
  }
  if (config.shared_bytes < 0 || config.shared_bytes > max_shared_bytes_) {
    return Refuse(function, {"a launch with ", config.shared_bytes, " bytes of shared memory, of ", max_shared_bytes_});
  }
  Kernel& known = kernels_[function];
  const auto num_arguments = static_cast<int64_t>(buffers.size() + ints.size());
  if (num_arguments < known.num_arguments) {  // the driver would read beyond them
    return Refuse(function, {"a launch with ", num_arguments, " arguments, of ", known.num_arguments});
  }
  if (copies_.IsPutOff(buffers)) {  // while they run, what was launched before does
    const CurrentContext current(*driver_, context_);
    INGOT_RETURN_IF_ERROR(FlushForLocked(current, buffers));
  }
  // The kernel may have variables in shared memory, too, with which any size would be more than is always allowed.
  int64_t& allowed_shared = known.allowed_shared;
  const bool is_default = stream.handle == nullptr;
  if (is_default && config.shared_bytes <= allowed_shared && !queue_.IsFull()) {
    queue_.Add(function, config, buffers, ints);
    return Status();
  }
  const CurrentContext current(*driver_, context_);
  CudaLaunchQueue::Outcome allowed{current.result(), "cuCtxPushCurrent"};
  if (allowed.result == kCudaSuccess && config.shared_bytes > allowed_shared) {
    const auto bytes = static_cast<int>(config.shared_bytes);
    allowed = {driver_->FuncSetAttribute(function, kCudaFuncMaxDynamicShared, bytes), "cuFuncSetAttribute", function};
  }
  INGOT_RETURN_IF_ERROR(Check(allowed));
  allowed_shared = std::max(allowed_shared, config.shared_bytes);
  if (!is_default || queue_.IsFull()) INGOT_RETURN_IF_ERROR(FlushLocked(current));
  queue_.Add(function, config, buffers, ints);
  return is_default ? Status() : FlushLocked(current, Handle(stream));
}

Status CudaDevice::Refuse(CudaFunction kernel, Text why) const {
  return Named(kernel, Status(StatusCode::kInvalidArgument, {"cuda:", index_, ": ", why}));
}

Status CudaDevice::Check(const CudaLaunchQueue::Outcome& outcome) {
  return Named(outcome.kernel, Check(outcome.result, outcome.call));
}

Status CudaDevice::Named(CudaFunction kernel, Status status) const {
  const auto name = kernels_.find(kernel);
  if (status.ok() || name == kernels_.end()) return status;
  return std::move(status).WithContext({"kernel \"", name->second.name, "\""});
}

void CudaDevice::AddKernel(CudaFunction kernel, std::string_view name, int64_t num_arguments) {
  std::lock_guard lock(launch_mutex_);
  kernels_[kernel] = {std::string(name), 0, num_arguments};
}

void CudaDevice::RemoveKernels(const CurrentContext& current, std::span<const CudaFunction> kernels) {
  FlushSilently(current);
  std::lock_guard lock(launch_mutex_);
  queue_.DropGraphs();
  for (const CudaFunction kernel : kernels) kernels_.erase(kernel);
}

Status CudaDevice::FlushFor(const CurrentContext& current, std::span<void* const> addresses) {
  std::lock_guard lock(launch_mutex_);
  return FlushForLocked(current, addresses);
}

Status CudaDevice::FlushForLocked(const CurrentContext& current, std::span<void* const> addresses) {
  INGOT_RETURN_IF_ERROR(FlushLocked(current));
  return Check(copies_.CatchUp(context_, addresses));
}

void CudaDevice::FlushSilently(const CurrentContext& current) {
  std::lock_guard lock(launch_mutex_);
  if (queue_.size() > 0) failure_ = FlushLocked(current);
}

Status CudaDevice::FlushLocked(const CurrentContext& current, CudaStream stream) {
  Status before = std::exchange(failure_, Status());
  if (before.ok()) before = Check(current.result(), "cuCtxPushCurrent");
  if (!before.ok()) {
    queue_.Clear();
    return before;
  }
  const auto num_launches = static_cast<int64_t>(queue_.size());
  if (num_launches == 0) return Status();
  if (timer_thread_ != std::thread::id() && stream == nullptr) return FlushTimed();
  INGOT_RETURN_IF_ERROR(Check(queue_.Flush(stream)));
  return Check(BoundLaunches(num_launches));
}

CudaOutcome CudaDevice::BoundLaunches(int64_t num_launches) {
  const int64_t marks_before = num_launches_ / kLaunchesPerMark;
  num_launches_ += num_launches;
  if (num_launches_ / kLaunchesPerMark == marks_before) return {};
  LaunchMark& mark = marks_[num_launches_ / kLaunchesPerMark % 2];
  if (mark.event == nullptr) INGOT_CUDA_TRY(driver_->EventCreate(&mark.event, kEventWithoutTime), "cuEventCreate");
  if (mark.is_recorded) INGOT_CUDA_TRY(driver_->EventSynchronize(mark.event), "cuEventSynchronize");
  const CudaOutcome outcome{driver_->EventRecord(mark.event, nullptr), "cuEventRecord"};
  mark.is_recorded = outcome.ok();
  return outcome;
}

Status CudaDevice::StartTimer() {
  INGOT_RETURN_IF_ERROR(Usable());
  const CurrentContext current(*driver_, context_);
  std::unique_lock lock(launch_mutex_);
  AwaitTimer(lock);
  INGOT_RETURN_IF_ERROR(FlushLocked(current));
  for (CudaEvent& event : timer_) {
    if (event != nullptr) continue;
    INGOT_RETURN_IF_ERROR(Check(driver_->EventCreate(&event, kEventWithTime), "cuEventCreate"));
  }
  timer_thread_ = std::this_thread::get_id();
  timed_ms_ = 0;
  return Status();
}

Status CudaDevice::FlushTimed() {
  INGOT_RETURN_IF_ERROR(Check(queue_.FlushBetween(timer_[0], timer_[1])));
  float milliseconds = 0;
  const auto read = [&]() -> CudaOutcome {
    INGOT_CUDA_TRY(driver_->EventSynchronize(timer_[1]), "cuEventSynchronize");
    return {driver_->EventElapsedTime(&milliseconds, timer_[0], timer_[1]), "cuEventElapsedTime"};
  };
  INGOT_RETURN_IF_ERROR(Check(read()));
  timed_ms_ += double{milliseconds};
  return Status();
}

Result<int64_t> CudaDevice::StopTimer() {
  const CurrentContext current(*driver_, context_);
  std::lock_guard lock(launch_mutex_);
  const Status flushed = FlushLocked(current);
  timer_thread_ = std::thread::id();
  timer_stops_.notify_all();
  INGOT_RETURN_IF_ERROR(flushed);
  return static_cast<int64_t>(timed_ms_ * 1e6);
}

}  // namespace

Result<Ref<Device>> CreateCudaDevice(int32_t index, const CudaOptions& options) {
  if (index < 0) return Status(StatusCode::kNotFound, {"cuda:", index, ": no such device"});
  INGOT_ASSIGN_OR_RETURN(Ref<CudaDriver> driver, CudaDriver::Open(options.driver_path));
  auto* device = new (std::nothrow) CudaDevice(index, options, std::move(driver));
  if (device == nullptr) return Status::OutOfMemory();
  Ref<Device> created = Ref<Device>::Adopt(device);
  INGOT_RETURN_IF_ERROR(device->Initialize(options.kept_bytes));
  return created;
}

Result<Ref<Device>> CreateDefaultCudaDevice(int32_t index, const HostAllocator&) {
  return CreateCudaDevice(index, CudaOptions());
}

}  // namespace ingot
