// HostAllocator: where the runtime's tensor memory on the host comes from. Two functions and a pointer, so that an
// embedder can hand in its own through the C API.
#pragma once

#include <cstdint>

namespace ingot {

struct HostAllocator {
  // size_bytes > 0; alignment is a power of two. Null when there is no memory. Must not throw.
  void* (*allocate)(void* user_data, int64_t size_bytes, int64_t alignment) = nullptr;
  // Given the size and alignment of the allocation.
  void (*free)(void* user_data, void* data, int64_t size_bytes, int64_t alignment) = nullptr;
  void* user_data = nullptr;

  // Aligned operator new and delete.
  static HostAllocator Default();
};

}  // namespace ingot
