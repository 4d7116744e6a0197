#include "tests/allocation_counter.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

thread_local int64_t num_allocations = 0;
thread_local int64_t failing = 0;            // the count at which one fails
thread_local bool fails_after = false;       // and all after it
std::atomic<int64_t> left_of_any_thread{0};  // allocations until one fails; 0: none does
thread_local int64_t live_bytes = 0, peak_bytes = 0;

void* Allocate(std::size_t size, std::size_t alignment) {
  if (++num_allocations == failing || (fails_after && num_allocations > failing)) return nullptr;
  if (left_of_any_thread.load() > 0 && left_of_any_thread.fetch_sub(1) == 1) return nullptr;
  size = size == 0 ? 1 : size;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(size)
                           : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  peak_bytes = std::max(peak_bytes, live_bytes);
  return memory;
}

void Free(void* memory) {
  live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void* AllocateOrThrow(std::size_t size, std::size_t alignment) {
  void* memory = Allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return AllocateOrThrow(size, 1); }
void* operator new[](std::size_t size) { return AllocateOrThrow(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return AllocateOrThrow(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { Free(memory); }

namespace ingot::test {
int64_t NumAllocations() { return num_allocations; }
void FailAllocation(int64_t k, bool for_ever) {
  failing = k == 0 ? 0 : num_allocations + k;
  fails_after = k != 0 && for_ever;
}
int64_t LiveBytes() { return live_bytes; }
int64_t TakePeakBytes() { return std::exchange(peak_bytes, live_bytes); }
void FailAllocationOfAnyThread(int64_t k) { left_of_any_thread = k; }
bool AllocationOfAnyThreadHasFailed() { return left_of_any_thread <= 0; }
bool AllocationHasFailed() { return num_allocations >= failing; }
}  // namespace ingot::test
