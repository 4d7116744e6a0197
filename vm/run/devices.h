// Devices: what the devices that a program names are on this machine, each with the pool of the memory that one context
// takes there. Programs refer to them by number.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/memory_pool.h"
#include "runtime/tensor.h"
#include "vm/program/program.h"
#include "vm/run/device_code.h"

namespace ingot::vm {

class Devices {
 public:
  explicit Devices(const HostAllocator& allocator) : allocator_(allocator) {}
  // Binds all devices of the program; each pool gives `max_memory_bytes` at most, 0: no cap.
  Status Bind(const Program& program, int64_t max_memory_bytes);
#ifdef INGOT_CUDA
  static constexpr bool kHaveCode = true;
  // Before Bind: the GPU for what the program has on its first one, the next for what it has on its second, and so on.
  // Fails where the program names no device of that kind; none: the devices that it names.
  Status Choose(const Program& program, std::optional<DeviceId> wanted);
  // After Bind. The executable and its instance, whose threads may help with copies, outlive this.
  Status LoadCode(const Executable& executable);
  // Whether tensors of callers that are elsewhere than the program has them are copied; they are refused otherwise.
  void set_copies_tensors(bool on) { copies_tensors_ = on; }
  bool copies_tensors() const { return copies_tensors_; }
  // Between the host and a device of the program, or on one of them (device_copies.cc). The host's memory is free to
  // change, or complete, when this returns. A copy from it may be later: then it stays as it is until the work that uses
  // the copy has ended, or until ForgetCopies, when nothing will.
  Status CopyTensor(const TensorView& from, const TensorView& to, bool may_be_later = false) const;
  void ForgetCopies() const;
  // After copies to callers, who may look at their GPU's memory by another stream.
  Status WaitForCopies() const;
  DeviceCode* code() const { return code_.get(); }  // null: all is on the host
#else
  static constexpr bool kHaveCode = false;
  Status LoadCode(const Executable&) { return Status(); }
  static constexpr bool copies_tensors() { return false; }
  static Status CopyTensor(const TensorView& from, const TensorView& to, bool = false) {
    return CopyElements(from, to);
  }
  static void ForgetCopies() {}
  static Status WaitForCopies() { return Status(); }
  static DeviceCode* code() { return nullptr; }
#endif

  Device& device(size_t number) const { return *bound_[number].device; }
  MemoryPool& pool(size_t number) const { return *bound_[number].pool; }
  DeviceId id(size_t number) const { return bound_[number].device->id(); }
  std::span<const DeviceId> ids() const { return ids_; }  // of all, as types refer to them
  Status ZeroMemory(size_t number, void* data, int64_t bytes) const;

 private:
  struct Bound {
    Ref<Device> device;
    Ref<MemoryPool> pool;
  };
  const HostAllocator& allocator_;
  std::vector<Bound> bound_;
  std::vector<DeviceId> ids_;
  std::vector<std::byte> zeros_;  // to copy to devices that the host does not reach, which takes no memory then
#ifdef INGOT_CUDA
  int32_t first_gpu_ = 0;
  bool copies_tensors_ = false;
  std::unique_ptr<DeviceCode> code_;
#endif
};

}  // namespace ingot::vm
