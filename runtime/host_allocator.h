// HostAllocator: where the runtime's tensor memory on the host comes from. Two functions and a pointer, so that an
// embedder can hand in its own through the C API.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

// Null when there is no memory. Memory of several MiB begins at a huge page and is advised to be of such, which spares
// its first use thousands of page faults; where the system refuses, nothing is lost.
void* AllocateAligned(size_t size_bytes, size_t alignment);
// Given the size and alignment of the allocation.
void FreeAligned(void* data, size_t size_bytes, size_t alignment);
// Makes memory of AllocateAligned zero. Of much memory the pages are given back, so that it takes none until it is
// written; where the system refuses, it is written.
void ZeroAligned(void* data, size_t size_bytes);

struct HostAllocator {
  // size_bytes > 0; alignment is a power of two. Null when there is no memory. Must not throw.
  void* (*allocate)(void* user_data, int64_t size_bytes, int64_t alignment) = nullptr;
  // Given the size and alignment of the allocation.
  void (*free)(void* user_data, void* data, int64_t size_bytes, int64_t alignment) = nullptr;
  void* user_data = nullptr;

  // AllocateAligned and FreeAligned.
  static HostAllocator Default();
  bool is_default() const { return allocate == Default().allocate; }
};

}  // namespace ingot
