// The list of devices: one row each. CreateDevice is the only way to make one.
#pragma once

#include <span>

#include "runtime/device.h"

namespace ingot {

struct DeviceRow {
  DeviceKind kind;
  const char* name;
  // Each device defines what `index` means; not_found when this machine has no such device.
  Result<Ref<Device>> (*create)(int32_t index, const HostAllocator& host_allocator);
};

std::span<const DeviceRow> DeviceList();
Result<Ref<Device>> CreateDevice(DeviceId id, const HostAllocator& host_allocator = HostAllocator::Default());

}  // namespace ingot
