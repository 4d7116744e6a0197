// The host as a device: memory from the embedder's allocator or the default one, copies done when the call returns.
#pragma once

#include "runtime/device.h"

namespace ingot {

Result<Ref<Device>> CreateCpuDevice(int32_t index, const HostAllocator& allocator);

}  // namespace ingot
