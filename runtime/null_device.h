// The null device: memory that only its own copies may touch, checked to the byte, and no kernels. It is there to start
// a new device from, and for testing whoever uses devices: wrong pointers, ranges and leaks are found.
#pragma once

#include "runtime/device.h"

namespace ingot {

Result<Ref<Device>> CreateNullDevice(int32_t index, const HostAllocator& allocator);

}  // namespace ingot
