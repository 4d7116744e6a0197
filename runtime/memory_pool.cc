// The arithmetic of size classes, and one list of kept blocks per class, all under one mutex.
#include "runtime/memory_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <string>

namespace ingot {
namespace {

// Classes 0..7 are 64 to 512 bytes in steps of 64; from there on four classes per power of two.
constexpr int64_t kStepBytes = kTensorAlignment;
constexpr int kNumLinear = 8;
// The largest class: 2^62 bytes. Larger requests are out of memory.
constexpr int64_t kMaxBytes = int64_t{1} << 62;

}  // namespace

int MemoryPool::ClassOf(int64_t size_bytes) {
  const int64_t steps = (std::max<int64_t>(size_bytes, 1) - 1) / kStepBytes;  // 0 for 1..64 bytes
  if (steps < kNumLinear) return static_cast<int>(steps);
  // steps in [2^k, 2^(k+1)) with k >= 3 falls into one of four equal parts.
  const int k = static_cast<int>(std::bit_width(static_cast<uint64_t>(steps))) - 1;
  const int part = static_cast<int>(steps >> (k - 2) & 3);
  return kNumLinear + (k - 3) * 4 + part;
}

int64_t MemoryPool::ClassBytes(int size_class) {
  if (size_class < kNumLinear) return (size_class + 1) * kStepBytes;
  const int k = (size_class - kNumLinear) / 4 + 3;
  const int64_t part = (size_class - kNumLinear) % 4;
  return ((int64_t{1} << k) + ((part + 1) << (k - 2))) * kStepBytes;
}

Result<Ref<MemoryPool>> MemoryPool::Create(Ref<Device> device, int64_t limit_bytes) {
  auto* pool = new (std::nothrow) MemoryPool(std::move(device), limit_bytes);
  if (pool == nullptr) return Status::OutOfMemory();
  return Ref<MemoryPool>::Adopt(pool);
}

MemoryPool::~MemoryPool() {
  INGOT_CHECK(stats_.bytes_in_use == 0 && counted_bytes_ == 0, "a memory pool was destroyed before its blocks");
  ReleaseKeptLocked(0);
}

Result<void*> MemoryPool::Allocate(int64_t size_bytes) {
  const auto out_of_memory = [&](int64_t in_use) {
    return Status::OutOfMemory({"out of memory on ", device_->id().ToString(), ": requested ", size_bytes,
                                " bytes, in use ", in_use, ", limit ",
                                limit_bytes_ == kNoLimit ? Text("none") : Text(limit_bytes_)});
  };
  std::lock_guard lock(mutex_);
  if (size_bytes < 0 || size_bytes > kMaxBytes) return out_of_memory(stats_.bytes_in_use);
  const int size_class = ClassOf(size_bytes);
  const int64_t block_bytes = ClassBytes(size_class);
  std::vector<void*>& kept = kept_[size_class];
  void* data = nullptr;
  if (!kept.empty()) {
    data = kept.back();
    kept.pop_back();
    stats_.bytes_kept -= block_bytes;
  } else {
    if (block_bytes > FreeLocked()) return out_of_memory(stats_.bytes_in_use + counted_bytes_);
    ReleaseKeptLocked(FreeLocked() - block_bytes);
    try {
      kept.reserve(static_cast<size_t>(num_blocks_[size_class]) + 1);
    } catch (const std::bad_alloc&) {
      return Status::OutOfMemory();
    }
    Result<void*> block = device_->Allocate(block_bytes);
    if (!block.ok() && stats_.bytes_kept > 0) {  // the device may be full of what we keep
      ReleaseKeptLocked(0);
      block = device_->Allocate(block_bytes);
    }
    if (!block.ok()) return block;
    data = *block;
    ++num_blocks_[size_class];
    ++stats_.num_device_allocations;
  }
  ++stats_.num_allocations;
  stats_.bytes_in_use += block_bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return data;
}

void MemoryPool::Free(void* data, int64_t size_bytes) {
  const int size_class = ClassOf(size_bytes);
  const int64_t block_bytes = ClassBytes(size_class);
  std::lock_guard lock(mutex_);
  auto& kept = kept_[size_class];
  INGOT_CHECK(stats_.bytes_in_use >= block_bytes && kept.size() < kept.capacity());
  kept.push_back(data);
  stats_.bytes_in_use -= block_bytes;
  stats_.bytes_kept += block_bytes;
  ReleaseKeptLocked(2 * stats_.peak_bytes_in_use - stats_.bytes_in_use);
}

Result<Ref<Storage>> MemoryPool::AllocateStorage(int64_t size_bytes) {
  INGOT_ASSIGN_OR_RETURN(void* data, Allocate(size_bytes));
  Retain();
  const auto give_back = [](void* context, void* block, int64_t block_bytes) {
    const Ref<MemoryPool> pool = Ref<MemoryPool>::Adopt(static_cast<MemoryPool*>(context));
    pool->Free(block, block_bytes);
  };
  return Storage::Wrap(data, size_bytes, device_->id(), give_back, this);
}

bool MemoryPool::Count(int64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > FreeLocked()) return false;
  counted_bytes_ += bytes;
  ReleaseKeptLocked(FreeLocked());
  return true;
}

CountedMemory::~CountedMemory() {
  if (pool_) pool_->Count(-bytes_);
}

void CountedMemory::Set(size_t bytes) {
  const auto wanted = static_cast<int64_t>(bytes);
  if (pool_ && !pool_->Count(wanted - bytes_)) throw std::bad_alloc();
  bytes_ = wanted;
}

void MemoryPool::Trim() {
  std::lock_guard lock(mutex_);
  ReleaseKeptLocked(0);
}

// Gives kept blocks back, largest first, until at most until_bytes are kept.
void MemoryPool::ReleaseKeptLocked(int64_t until_bytes) {
  for (int size_class = kNumClasses - 1; size_class >= 0 && stats_.bytes_kept > until_bytes; --size_class) {
    const int64_t block_bytes = ClassBytes(size_class);
    while (!kept_[size_class].empty() && stats_.bytes_kept > until_bytes) {
      device_->Free(kept_[size_class].back(), block_bytes);
      kept_[size_class].pop_back();
      --num_blocks_[size_class];
      stats_.bytes_kept -= block_bytes;
    }
  }
}

MemoryPoolStats MemoryPool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace ingot
