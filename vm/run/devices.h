// Devices: what the devices that a program names are on this machine, each with the pool of the memory that one context
// takes there. Programs refer to them by number.
#pragma once

#include <span>
#include <vector>

#include "runtime/device.h"
#include "runtime/memory_pool.h"
#include "vm/program/program.h"

namespace ingot::vm {

class Devices {
 public:
  explicit Devices(const HostAllocator& allocator) : allocator_(allocator) {}
  // Binds all devices of the program; each pool gives `max_memory_bytes` at most, 0: no cap.
  Status Bind(const Program& program, int64_t max_memory_bytes);

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
};

}  // namespace ingot::vm
