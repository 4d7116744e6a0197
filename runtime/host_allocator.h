// HostAllocator: where the runtime's tensor memory on the host comes from. Two functions and a pointer, so that an
// embedder can hand in its own through the C API.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot {

// Null when there is no memory. Blocks of 4 MiB and more start at a multiple of 2 MiB and are advised to use huge
// pages, which saves thousands of page faults at their first use; where the system refuses, they have ordinary pages.
void* AllocateAligned(size_t size_bytes, size_t alignment);
// Given the size and alignment of the allocation.
void FreeAligned(void* data, size_t size_bytes, size_t alignment);
// Zeroes memory that AllocateAligned gave. The pages of a block of 64 MiB or more are given back to the system, so that
// they take no memory until they are written; where the system refuses, they are overwritten with zeros.
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
