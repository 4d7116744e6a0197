// DeviceCode: what the devices that launch kernels hold for one context: the images of the program's kernels, copies of
// the constants that its functions read there, workspaces, and the failures that kernels report. Work is queued on each
// device's default stream, so that what is queued later sees all that was queued before.
// Devices holds it, and has none in builds without INGOT_CUDA, which compile nothing of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::vm {

class Devices;
class Executable;

class DeviceCode {
 public:
  // Null for a program that is all on the host. Fails where a device has no variant of a kernel. The executable and the
  // devices outlive the result.
  static Result<std::unique_ptr<DeviceCode>> Load(const Executable& executable, const Devices& devices);
  virtual ~DeviceCode() = default;

  // The device's copy of a constant that a function reads there.
  virtual std::byte* ConstantData(uint8_t device, uint32_t constant) const = 0;
  // Queues the kernel's launches; `ints` are its integer arguments. Waits for a kernel that may fail. Launches in rounds
  // end as cancelled where `interrupted` is no longer 0.
  virtual Status Launch(const Kernel& kernel, std::span<void* const> buffers, std::span<const int64_t> ints,
                        const std::atomic<int32_t>& interrupted) = 0;
  // Waits for what was queued since the last call, and says what failed of it.
  virtual Status Wait() = 0;
  // How long a kernel's launches took between the two, by the clock of its device, in nanoseconds; the second one waits.
  virtual Status StartTimer(const Kernel& kernel) = 0;
  virtual Result<int64_t> StopTimer(const Kernel& kernel) = 0;
};

}  // namespace ingot::vm
