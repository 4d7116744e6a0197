#include "runtime/host_allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>

namespace ingot {
namespace {

constexpr size_t kHugePageBytes = size_t{1} << 21;

bool IsLarge(size_t size_bytes) { return size_bytes >= 2 * kHugePageBytes; }

std::align_val_t Alignment(size_t size_bytes, size_t alignment) {
  return std::align_val_t(IsLarge(size_bytes) ? std::max(alignment, kHugePageBytes) : alignment);
}

}  // namespace

void* AllocateAligned(size_t size_bytes, size_t alignment) {
  void* data = ::operator new(size_bytes, Alignment(size_bytes, alignment), std::nothrow);
  if (data != nullptr && IsLarge(size_bytes)) {
    static_cast<void>(madvise(data, size_bytes - size_bytes % kHugePageBytes, MADV_HUGEPAGE));
  }
  return data;
}

void FreeAligned(void* data, size_t size_bytes, size_t alignment) {
  ::operator delete(data, Alignment(size_bytes, alignment));
}

HostAllocator HostAllocator::Default() {
  HostAllocator allocator;
  allocator.allocate = [](void*, int64_t size_bytes, int64_t alignment) -> void* {
    return AllocateAligned(static_cast<size_t>(size_bytes), static_cast<size_t>(alignment));
  };
  allocator.free = [](void*, void* data, int64_t size_bytes, int64_t alignment) {
    FreeAligned(data, static_cast<size_t>(size_bytes), static_cast<size_t>(alignment));
  };
  return allocator;
}

}  // namespace ingot
