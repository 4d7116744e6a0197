// The null device: memory that only its own copies may touch, checked to the byte, and no kernels. A new device starts
// as a copy of it, and tests of code that uses devices run on it: it finds wrong pointers, ranges and leaks.
#pragma once

#include "runtime/device.h"

namespace ingot {

Result<Ref<Device>> CreateNullDevice(int32_t index, const HostAllocator& allocator);

}  // namespace ingot
