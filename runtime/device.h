// Device: one interface to the memory, streams and kernels of any device. A new one starts as a copy of
// null_device.{h,cc} and one row of the device list (device_list.h); one conformance suite runs on every row
// (tests/runtime/device_test.cc). Devices are thread-safe. They are reference-counted, because tensors that left a
// context keep the device of their memory alive.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/device_id.h"
#include "runtime/host_allocator.h"
#include "runtime/ref.h"
#include "runtime/status.h"

namespace ingot {

class ThreadPool;

// A queue of work on one device; null is the device's default stream. Devices whose work is done when a call returns
// have only that one.
struct Stream {
  void* handle = nullptr;
  friend bool operator==(Stream, Stream) = default;
};

// Loaded code of a device with its own instruction set; freed with the last reference. It must not outlive its device.
class DeviceImage : public RefCounted {
 public:
  static void Destroy(DeviceImage* image) { delete image; }
  virtual ~DeviceImage() = default;
  // The device's handle of a kernel by its name.
  virtual Result<void*> FindKernel(std::string_view name) = 0;
};

// Portable code runs on later architectures, too, after its driver has compiled it; machine code on its own kind alone.
enum class CodeForm : uint8_t { kPortable, kMachine };

struct LaunchConfig {
  int64_t grid[3] = {1, 1, 1};
  int64_t block[3] = {1, 1, 1};
  int64_t shared_bytes = 0;
};

class Device : public RefCounted {
 public:
  static void Destroy(Device* device) { delete device; }
  virtual ~Device() = default;

  virtual DeviceId id() const = 0;
  // A name for people, such as "host CPU".
  virtual std::string_view description() const = 0;
  // True when kernels are launched through LaunchKernel from images loaded here. False on the CPU, whose kernels the
  // VM maps and calls itself, and on devices that do not compute.
  virtual bool launches_kernels() const = 0;

  // Uninitialised memory aligned to kTensorAlignment; size_bytes >= 0 (zero gives a valid address too). Failure is an
  // out-of-memory status that tells the size.
  virtual Result<void*> Allocate(int64_t size_bytes) = 0;
  // Frees a block of Allocate; the size is the one that it was allocated with.
  virtual void Free(void* data, int64_t size_bytes) = 0;

  virtual Result<Stream> CreateStream() = 0;
  virtual void DestroyStream(Stream stream) = 0;

  // Ordered on the stream. Host memory must stay as it is until the stream is synchronised. Ranges must not overlap.
  virtual Status CopyFromHost(void* to, const void* from, int64_t size_bytes, Stream stream) = 0;
  virtual Status CopyToHost(void* to, const void* from, int64_t size_bytes, Stream stream) = 0;
  virtual Status CopyWithin(void* to, const void* from, int64_t size_bytes, Stream stream) = 0;
#ifdef INGOT_CUDA
  // CopyFromHost on the default stream, to memory that nothing else is queued for: it may be put off until something that
  // is queued later uses its target, or the stream is synchronised. ForgetCopies drops those that were not needed so far.
  virtual Status CopyFromHostLater(void* to, const void* from, int64_t size_bytes) {
    return CopyFromHost(to, from, size_bytes, {});
  }
  virtual void ForgetCopies() {}
  // Threads of the host that may share long copies; they outlive the last one. Null: none.
  virtual void UseThreads(ThreadPool* /*threads*/) {}
#endif
  // Waits for everything queued on the stream and reports what failed since the last call.
  virtual Status Synchronize(Stream stream) = 0;

  // Whether images for this architecture can be loaded here: "sm_80" and the like.
  virtual bool RunsCodeFor(std::string_view /*architecture*/, CodeForm /*form*/) const { return false; }
  // Refused by devices that do not launch kernels. Unsupported_file: it is code of a form or a version that the device's
  // driver does not take. The bytes are borrowed for the call only.
  virtual Result<Ref<DeviceImage>> LoadImage(std::span<const uint8_t> image) = 0;
  // Kernel arguments as in kernel_abi.h: tensor pointers, then integers.
  virtual Status LaunchKernel(void* kernel, const LaunchConfig& config, std::span<void* const> buffers,
                              std::span<const int64_t> ints, Stream stream) = 0;
  // Of devices that launch kernels: how long the launches took that the calling thread queued on the default stream in
  // between, by the device's own clock, in nanoseconds. StopTimer waits for them. There is one timer: a thread that starts
  // it stops it, and until then launches of other threads wait, as does their start of it.
  virtual Status StartTimer() { return Status(); }
  virtual Result<int64_t> StopTimer() { return int64_t{0}; }
};

}  // namespace ingot
