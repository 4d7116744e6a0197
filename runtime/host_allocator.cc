#include "runtime/host_allocator.h"

#include <cstddef>
#include <new>

namespace ingot {

HostAllocator HostAllocator::Default() {
  HostAllocator allocator;
  allocator.allocate = [](void*, int64_t size_bytes, int64_t alignment) -> void* {
    return ::operator new(static_cast<size_t>(size_bytes), std::align_val_t(alignment), std::nothrow);
  };
  allocator.free = [](void*, void* data, int64_t, int64_t alignment) {
    ::operator delete(data, std::align_val_t(alignment));
  };
  return allocator;
}

}  // namespace ingot
