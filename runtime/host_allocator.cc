// The default allocator: operator new, with 2 MiB alignment and MADV_HUGEPAGE for large blocks, and zeroing, which
// gives the pages of large blocks back to the system instead of writing them.
#include "runtime/host_allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
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

void ZeroAligned(void* data, size_t size_bytes) {
  constexpr size_t kMuchBytes = size_t{1} << 26;
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t head = (page_bytes - reinterpret_cast<uintptr_t>(data) % page_bytes) % page_bytes;
  if (size_bytes >= kMuchBytes) {
    auto* const begin = static_cast<volatile char*>(data) + head;
    const size_t length = (size_bytes - head) / page_bytes * page_bytes;
    volatile char* const last = begin + length - 1;
    // An application's own operator new may give pages that are shared with a file. MADV_DONTNEED does not zero those:
    // they keep these marks, and are overwritten below.
    *begin = 1;
    *last = 1;
    if (madvise(const_cast<char*>(begin), length, MADV_DONTNEED) == 0 && *begin == 0 && *last == 0) {
      std::memset(data, 0, head);
      std::memset(static_cast<char*>(data) + head + length, 0, size_bytes - head - length);
      return;
    }
  }
  if (size_bytes > 0) std::memset(data, 0, size_bytes);
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
