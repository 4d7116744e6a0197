// The record of a failure in device memory is what kernels for CUDA are given (compiler/codegen/cuda_kernel_emitter.h):
// int32 code, padding to 8 bytes, int64 a, int64 b. A device has one, which is read after each launch of a kernel that may
// fail: what would be launched next may rely on what the failing one did not write.
#include "vm/run/device_code.h"

#include <sys/random.h>

#include <algorithm>
#include <map>
#include <vector>

#include "runtime/kernel_context.h"
#include "vm/program/foreach.h"
#include "vm/program/limits.h"
#include "vm/run/call_failures.h"
#include "vm/run/devices.h"
#include "vm/run/executable.h"

namespace ingot::vm {
namespace {

struct FailureRecord {
  int32_t code = 0;
  int32_t padding = 0;
  int64_t a = 0, b = 0;
};
static_assert(sizeof(FailureRecord) == 24);

class LoadedDeviceCode final : public DeviceCode {
 public:
  LoadedDeviceCode(const Executable& executable, const Devices& devices)
      : executable_(executable), program_(executable.program()), devices_(devices) {}
  Status LoadAll();

  std::byte* ConstantData(uint8_t device, uint32_t constant) const override {
    return static_cast<std::byte*>(on_[device].constants.at(constant)->data());
  }
  Status Launch(const Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> ints,
                const std::atomic<int32_t>& interrupted) override;
  Status Wait() override;
  Status StartTimer(const Kernel& kernel) override { return devices_.device(kernel.device).StartTimer(); }
  Result<int64_t> StopTimer(const Kernel& kernel) override { return devices_.device(kernel.device).StopTimer(); }

 private:
  using LoadedLaunches = std::vector<std::pair<const LaunchRecord*, void*>>;  // each with the device's handle
  struct OnDevice {
    std::map<uint32_t, Ref<DeviceImage>> images;
    std::map<uint32_t, Status> refused;  // images that the driver does not take
    std::map<uint32_t, Ref<ingot::Storage>> constants;
    Ref<ingot::Storage> failure;
    Ref<ingot::Storage> workspace;
    bool is_busy = false;  // something was queued since the last wait
  };

  Status LoadKernel(const Kernel& kernel, LoadedLaunches& loaded);
  struct Rounds {
    std::optional<int64_t> count;  // none: the launch is in no rounds
    int64_t number = 0;            // of the launch in each
  };
  static Status OddRounds(const Kernel& kernel, const Rounds& rounds) {
    return Status(StatusCode::kInvalidArgument,
                  {"kernel \"", kernel.name, "\": a launch is number ", rounds.number, " of ", *rounds.count,
                   " rounds, which does not go with those before it"});
  }
  static Result<Rounds> RoundsOf(const LoadedLaunches::value_type& loaded, std::span<const int64_t> ints);
  // With the words as they are.
  Status LaunchOne(const Kernel& kernel, const LoadedLaunches::value_type& loaded, std::span<void* const> buffers,
                   std::span<const int64_t> ints);
  struct Chosen {
    uint32_t variant;
    DeviceImage* image;
  };
  Result<Chosen> ChooseVariant(const Kernel& kernel);
  Result<DeviceImage*> ImageOf(uint8_t device, uint32_t image);
  Status CopyConstants();
  Status ReadFailure(const Kernel& kernel);

  const Executable& executable_;
  const Program& program_;
  const Devices& devices_;
  std::vector<LoadedLaunches> launches_;  // as in Program::kernels
  std::vector<OnDevice> on_;              // as in Program::devices
  std::vector<int64_t> words_;            // the integers of a launch
};

Status LoadedDeviceCode::LoadAll() {
  on_.resize(program_.devices.size());
  launches_.resize(program_.kernels.size());
  for (size_t i = 0; i < program_.kernels.size(); ++i) {
    const Kernel& kernel = program_.kernels[i];
    if (!devices_.device(kernel.device).launches_kernels()) continue;
    INGOT_RETURN_IF_ERROR(LoadKernel(kernel, launches_[i]).WithContext({"kernel \"", kernel.name, "\""}));
  }
  for (size_t number = 0; number < on_.size(); ++number) {
    OnDevice& on = on_[number];
    if (!devices_.device(number).launches_kernels()) continue;
    INGOT_ASSIGN_OR_RETURN(on.failure, devices_.pool(number).AllocateStorage(sizeof(FailureRecord)));
    INGOT_RETURN_IF_ERROR(devices_.ZeroMemory(number, on.failure->data(), sizeof(FailureRecord)));
  }
  return CopyConstants();
}

// The first variant that the device runs and its driver takes: a cubin of a newer toolkit than the driver stands before
// PTX that the driver may know.
Result<LoadedDeviceCode::Chosen> LoadedDeviceCode::ChooseVariant(const Kernel& kernel) {
  const Device& device = devices_.device(kernel.device);
  std::string needs;
  Status refused;
  for (uint32_t i = 0; i < kernel.variants.size(); ++i) {
    const uint32_t number = kernel.variants[i].image;
    const KernelImage& image = program_.images[number];
    const CodeForm form = image.format == ImageFormat::kCubin ? CodeForm::kMachine : CodeForm::kPortable;
    if (device.RunsCodeFor(image.arch, form)) {
      Result<DeviceImage*> loaded = ImageOf(kernel.device, number);
      if (loaded.ok()) return Chosen{i, *loaded};
      if (loaded.status().code() != StatusCode::kUnsupportedFile) return std::move(loaded).status();
      refused = std::move(loaded).status();
    }
    if (form == CodeForm::kPortable) StrAppend(needs, {needs.empty() ? "" : " or ", image.arch});
  }
  INGOT_RETURN_IF_ERROR(std::move(refused));
  return Status(StatusCode::kUnsupportedFile, {"it needs ", needs.empty() ? "code, and has none" : needs, "; ",
                                               device.id().ToString(), " is ", device.description()});
}

// The driver keeps the code that it compiles of PTX in files of the user's, which no signature covers, and finds it by the
// text: with a comment that nobody can know, it compiles anew.
Status AddRandomComment(std::string& ptx) {
  uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random)
    return Status(StatusCode::kFailed, "there are no random numbers");
  StrAppend(ptx, {"\n// ", random[0], " ", random[1], "\n"});
  return Status();
}

Result<DeviceImage*> LoadedDeviceCode::ImageOf(uint8_t device, uint32_t image) {
  OnDevice& on = on_[device];
  if (const auto known = on.refused.find(image); known != on.refused.end()) return known->second;
  Ref<DeviceImage>& loaded = on.images[image];
  if (!loaded) {
    const std::span<const std::byte> bytes = program_.images[image].bytes.bytes;
    std::span<const uint8_t> code(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    std::string own;
    if (executable_.has_policy() && program_.images[image].format == ImageFormat::kPtx) {
      own.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      INGOT_RETURN_IF_ERROR(AddRandomComment(own));
      code = {reinterpret_cast<const uint8_t*>(own.data()), own.size()};
    }
    Result<Ref<DeviceImage>> made = devices_.device(device).LoadImage(code);
    if (!made.ok()) {
      if (made.status().code() == StatusCode::kUnsupportedFile) on.refused[image] = made.status();
      return std::move(made).status();
    }
    loaded = *std::move(made);
  }
  return loaded.get();
}

Status LoadedDeviceCode::LoadKernel(const Kernel& kernel, LoadedLaunches& loaded) {
  INGOT_ASSIGN_OR_RETURN(const Chosen chosen, ChooseVariant(kernel));
  for (const LaunchRecord& launch : kernel.launches) {
    if (launch.variant != chosen.variant) continue;
    INGOT_ASSIGN_OR_RETURN(void* const handle, chosen.image->FindKernel(launch.entry));
    loaded.emplace_back(&launch, handle);
  }
  return Status();
}

Status LoadedDeviceCode::CopyConstants() {
  for (const Function& function : program_.functions) {
    for (const Instruction& in : function.code) {
      if (in.opcode != Opcode::kConstTensor) continue;
      const auto made = in.As<op::ConstTensor>();
      const uint8_t device = function.TypeOf(made.dst()).device;
      if (devices_.id(device).is_host_accessible()) continue;
      const uint32_t id = made.constant().value;
      Ref<ingot::Storage>& copy = on_[device].constants[id];
      if (copy) continue;
      const int64_t bytes = program_.constants[id].size_bytes();
      INGOT_ASSIGN_OR_RETURN(copy, devices_.pool(device).AllocateStorage(bytes));
      INGOT_RETURN_IF_ERROR(
          devices_.device(device).CopyFromHost(copy->data(), executable_.ConstantData(id), bytes, {}));
    }
  }
  return Status();
}

Status LoadedDeviceCode::Launch(const Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> ints,
                                const std::atomic<int32_t>& interrupted) {
  OnDevice& on = on_[kernel.device];
  INGOT_ASSIGN_OR_RETURN(const int64_t workspace_bytes, kernel.workspace.Evaluate(ints));
  if (workspace_bytes < 0 || workspace_bytes > kMaxArenaBytes) {
    return Status::OutOfMemory({"a workspace of ", workspace_bytes, " bytes"});
  }
  if (workspace_bytes > (on.workspace ? on.workspace->size_bytes() : 0)) {
    INGOT_ASSIGN_OR_RETURN(on.workspace, devices_.pool(kernel.device).AllocateStorage(workspace_bytes));
  }
  const auto address = [](void* data) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data)); };
  words_.assign(ints.begin(), ints.end());
  words_.push_back(on.workspace ? address(on.workspace->data()) : 0);
  words_.push_back(address(on.failure->data()));
  const LoadedLaunches& launches = launches_[static_cast<size_t>(&kernel - program_.kernels.data())];
  for (size_t first = 0, end = 0; first < launches.size(); first = end) {
    INGOT_ASSIGN_OR_RETURN(const Rounds rounds, RoundsOf(launches[first], ints));
    for (end = first + 1; end < launches.size() && rounds.count; ++end) {
      INGOT_ASSIGN_OR_RETURN(const Rounds next, RoundsOf(launches[end], ints));
      if (!next.count || next.number == 0) break;
      if (next.count != rounds.count || next.number != static_cast<int64_t>(end - first))
        return OddRounds(kernel, next);
    }
    if (rounds.count && (*rounds.count < 0 || rounds.number != 0)) return OddRounds(kernel, rounds);
    if (!rounds.count) {
      INGOT_RETURN_IF_ERROR(LaunchOne(kernel, launches[first], buffers, ints));
      continue;
    }
    words_.push_back(0);
    for (int64_t round = 0; round < *rounds.count; ++round) {
      if (interrupted.load(std::memory_order_relaxed) != 0) return Status(StatusCode::kCancelled, "interrupted");
      words_.back() = round;
      for (size_t i = first; i < end; ++i) {
        INGOT_RETURN_IF_ERROR(LaunchOne(kernel, launches[i], buffers, ints));
      }
    }
    words_.pop_back();
  }
  return Status();
}

Result<LoadedDeviceCode::Rounds> LoadedDeviceCode::RoundsOf(const LoadedLaunches::value_type& loaded,
                                                            std::span<const int64_t> ints) {
  const std::vector<DimCode>& sizes = loaded.first->sizes;
  if (sizes.size() == kNumLaunchSizes) return Rounds{};
  Rounds rounds;
  INGOT_ASSIGN_OR_RETURN(rounds.count, sizes[kNumLaunchSizes].Evaluate(ints));
  INGOT_ASSIGN_OR_RETURN(rounds.number, sizes[kNumLaunchSizes + 1].Evaluate(ints));
  return rounds;
}

Status LoadedDeviceCode::LaunchOne(const Kernel& kernel, const LoadedLaunches::value_type& loaded,
                                   std::span<void* const> buffers, std::span<const int64_t> ints) {
  OnDevice& on = on_[kernel.device];
  const auto& [launch, handle] = loaded;
  LaunchConfig config;
  for (size_t axis = 0; axis < 3; ++axis) {
    INGOT_ASSIGN_OR_RETURN(config.grid[axis], launch->sizes[axis].Evaluate(ints));
    INGOT_ASSIGN_OR_RETURN(config.block[axis], launch->sizes[3 + axis].Evaluate(ints));
  }
  INGOT_ASSIGN_OR_RETURN(config.shared_bytes, launch->sizes[6].Evaluate(ints));
  if (std::ranges::find(config.grid, 0) != std::end(config.grid)) return Status();
  on.is_busy = true;
  INGOT_RETURN_IF_ERROR(devices_.device(kernel.device).LaunchKernel(handle, config, buffers, words_, {}));
  return (kernel.effects & kEffectMayFail) != 0 ? ReadFailure(kernel) : Status();
}

Status LoadedDeviceCode::Wait() {
  for (size_t number = 0; number < on_.size(); ++number) {
    OnDevice& on = on_[number];
    if (!on.is_busy) continue;
    on.is_busy = false;
    INGOT_RETURN_IF_ERROR(devices_.device(number).Synchronize({}));
  }
  return Status();
}

Status LoadedDeviceCode::ReadFailure(const Kernel& kernel) {
  void* const record = on_[kernel.device].failure->data();
  Device& device = devices_.device(kernel.device);
  FailureRecord read;
  INGOT_RETURN_IF_ERROR(device.CopyToHost(&read, record, sizeof(read), {}));
  INGOT_RETURN_IF_ERROR(device.Synchronize({}));
  if (read.code == 0) return Status();
  static constexpr FailureRecord kNone;
  INGOT_RETURN_IF_ERROR(device.CopyFromHost(record, &kNone, sizeof(kNone), {}));
  return KernelFailed(kernel, {read.code, read.a, read.b});
}

}  // namespace

Result<std::unique_ptr<DeviceCode>> DeviceCode::Load(const Executable& executable, const Devices& devices) {
  const auto launches = [&](size_t number) { return devices.device(number).launches_kernels(); };
  bool has_any = false;
  for (size_t number = 0; number < executable.program().devices.size(); ++number) has_any |= launches(number);
  if (!has_any) return std::unique_ptr<DeviceCode>();
  auto loaded = std::make_unique<LoadedDeviceCode>(executable, devices);
  INGOT_RETURN_IF_ERROR(loaded->LoadAll());
  return std::unique_ptr<DeviceCode>(std::move(loaded));
}

}  // namespace ingot::vm
