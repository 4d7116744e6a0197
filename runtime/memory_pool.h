// MemoryPool: memory of one device, reused and bounded. Sizes are rounded up to classes (multiples of 64 bytes, then
// four steps per power of two, so at most a quarter is wasted); a freed block is kept for the next request of its
// class. The bound covers what is in use and what is kept: when a new block does not fit, kept blocks are given back
// to the device first, largest class first. Without a bound, what is in use and kept stays under twice the peak of what
// was in use: requests that repeat find their blocks again, and requests that never repeat do not pile up. The same
// requests always get the same outcome, whatever the addresses.
// Thread-safe, since tensors that left a context may be released anywhere; reference-counted, since they may outlive
// whoever made the pool.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "runtime/device.h"
#include "runtime/ref.h"
#include "runtime/tensor.h"

namespace ingot {

struct MemoryPoolStats {
  int64_t bytes_in_use = 0;            // rounded up to size classes
  int64_t peak_bytes_in_use = 0;       // the highest bytes_in_use so far
  int64_t bytes_kept = 0;              // freed and kept for reuse
  int64_t num_allocations = 0;         // requests served so far
  int64_t num_device_allocations = 0;  // of them, served by the device
};

class MemoryPool : public RefCounted {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  static Result<Ref<MemoryPool>> Create(Ref<Device> device, int64_t limit_bytes = kNoLimit);
  static void Destroy(MemoryPool* pool) { delete pool; }

  // Uninitialised memory, kTensorAlignment-aligned. An out-of-memory status tells requested, in use and limit.
  Result<void*> Allocate(int64_t size_bytes);
  // Takes what Allocate gave, with the size that was asked for.
  void Free(void* data, int64_t size_bytes);
  // The same as a Storage, which keeps the pool alive.
  Result<Ref<Storage>> AllocateStorage(int64_t size_bytes);
  // Counts more or, with a negative number, fewer bytes of memory elsewhere against the bound; false: they do not fit.
  // Statistics leave them out. CountedMemory gives back what it counted.
  bool Count(int64_t bytes);
  // Gives every kept block back to the device.
  void Trim();

  const Ref<Device>& device() const { return device_; }
  int64_t limit_bytes() const { return limit_bytes_; }
  MemoryPoolStats stats() const;

 private:
  static constexpr int kNumClasses = 220;  // up to 2^62 bytes

  MemoryPool(Ref<Device> device, int64_t limit_bytes) : device_(std::move(device)), limit_bytes_(limit_bytes) {}
  ~MemoryPool();
  static int ClassOf(int64_t size_bytes);
  static int64_t ClassBytes(int size_class);
  // What the bound leaves for kept and new blocks.
  int64_t FreeLocked() const { return limit_bytes_ - counted_bytes_ - stats_.bytes_in_use; }
  void ReleaseKeptLocked(int64_t until_bytes);

  const Ref<Device> device_;
  const int64_t limit_bytes_;
  mutable std::mutex mutex_;
  MemoryPoolStats stats_;
  int64_t counted_bytes_ = 0;  // by Count
  // Per class, the kept blocks; its capacity covers all blocks of the class, so that freeing never allocates.
  std::array<std::vector<void*>, kNumClasses> kept_;
  std::array<int64_t, kNumClasses> num_blocks_{};  // in use and kept
};

// The share of an owner's memory in a pool's bound, given back with the owner.
class CountedMemory {
 public:
  // A null pool counts nothing.
  explicit CountedMemory(MemoryPool* pool) : pool_(Ref<MemoryPool>::Share(pool)) {}
  CountedMemory(const CountedMemory&) = delete;
  CountedMemory& operator=(const CountedMemory&) = delete;
  ~CountedMemory();
  // Counts so many bytes from now on. Throws std::bad_alloc, as an allocation does, when they do not fit.
  void Set(size_t bytes);

 private:
  const Ref<MemoryPool> pool_;
  int64_t bytes_ = 0;
};

}  // namespace ingot
