// A GPU by the CUDA driver API: its primary context, a pool of memory with a bound, streams, pinned staging memory,
// modules of PTX or cubin. Built with INGOT_CUDA; whether there is a driver is found out when a device is made.
//
// A fault of a kernel (an address that is none, a trap) loses the context, as the driver demands. The device then
// fails every call by name, and frees what it can; the driver serves no other device in this process either.
#pragma once

#include "runtime/device.h"

namespace ingot {

struct CudaOptions {
  const char* driver_path = nullptr;  // libcuda.so.1 by default
  int64_t memory_limit_bytes = INT64_MAX;
  int64_t kept_bytes = int64_t{64} << 20;  // freed memory that the pool keeps
};

// Not_found without a driver, with one that is too old, and of a GPU that is none.
Result<Ref<Device>> CreateCudaDevice(int32_t index, const CudaOptions& options);
// A row of the device list; device memory does not come from the host's allocator.
Result<Ref<Device>> CreateDefaultCudaDevice(int32_t index, const HostAllocator& allocator);

}  // namespace ingot
