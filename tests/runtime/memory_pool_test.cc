#include "runtime/memory_pool.h"

#include <doctest/doctest.h>

#include <random>
#include <thread>
#include <vector>

#include "runtime/device_list.h"

namespace ingot {
namespace {

Ref<MemoryPool> Pool(int64_t limit_bytes = MemoryPool::kNoLimit, DeviceKind kind = DeviceKind::kNull) {
  return MemoryPool::Create(CreateDevice(DeviceId{kind, 0}).value(), limit_bytes).value();
}

TEST_CASE("freed blocks are reused and counted") {
  const Ref<MemoryPool> pool = Pool();
  void* a = pool->Allocate(1000).value();
  CHECK(reinterpret_cast<uintptr_t>(a) % kTensorAlignment == 0);
  pool->Free(a, 1000);
  void* b = pool->Allocate(980).value();  // the same class
  CHECK(a == b);
  CHECK(pool->stats().num_allocations == 2);
  CHECK(pool->stats().num_device_allocations == 1);
  CHECK(pool->stats().bytes_in_use == 1024);
  CHECK(pool->stats().bytes_kept == 0);
  pool->Free(b, 980);
  CHECK(pool->stats().bytes_kept == 1024);
  CHECK(pool->stats().peak_bytes_in_use == 1024);
  pool->Trim();
  CHECK(pool->stats().bytes_kept == 0);
}

TEST_CASE("size classes cover the request and waste at most a quarter") {
  const Ref<MemoryPool> pool = Pool();
  for (int64_t size = 1; size < 1 << 20; size += 1 + size / 7) {
    void* data = pool->Allocate(size).value();
    const int64_t block = pool->stats().bytes_in_use;
    CHECK(block >= size);
    CHECK(block % kTensorAlignment == 0);
    if (size > 512) CHECK(block - size <= size / 4);
    pool->Free(data, size);
  }
}

TEST_CASE("requests that never repeat do not pile up: kept and used blocks stay under twice the peak") {
  const Ref<MemoryPool> pool = Pool();
  std::mt19937 random(3);
  int64_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto size = static_cast<int64_t>(random() % (1 << 20));
    pool->Free(pool->Allocate(size).value(), size);
    const MemoryPoolStats stats = pool->stats();
    most = std::max(most, stats.bytes_in_use + stats.bytes_kept);
    CHECK(stats.bytes_in_use + stats.bytes_kept <= 2 * stats.peak_bytes_in_use);
  }
  CHECK(most > 1 << 20);  // something is kept
}

TEST_CASE("the bound holds, says what was asked, and leaves the pool usable") {
  const Ref<MemoryPool> pool = Pool(4096);
  void* a = pool->Allocate(2048).value();
  const Status status = pool->Allocate(2049).status();
  CHECK(status.code() == StatusCode::kOutOfMemory);
  CHECK(status.message() == "out of memory on null: requested 2049 bytes, in use 2048, limit 4096");
  void* b = pool->Allocate(2048).value();
  CHECK_FALSE(pool->Allocate(1).ok());
  pool->Free(a, 2048);
  // Kept blocks are given back to make room for a block of another class.
  void* c = pool->Allocate(64).value();
  CHECK(pool->stats().bytes_kept == 0);
  pool->Free(b, 2048);
  pool->Free(c, 64);
  for (const int64_t size : {int64_t{-1}, int64_t{1} << 62, INT64_MAX}) {
    CHECK(Pool()->Allocate(size).status().code() == StatusCode::kOutOfMemory);
  }
}

TEST_CASE("when the device's allocator fails, kept blocks are given back first, then the failure is a status") {
  struct Host {
    int64_t left = 4096;  // bytes that it still gives
  } host;
  HostAllocator allocator;
  allocator.user_data = &host;
  allocator.allocate = [](void* user_data, int64_t size, int64_t alignment) -> void* {
    auto* h = static_cast<Host*>(user_data);
    if (size > h->left) return nullptr;
    h->left -= size;
    return HostAllocator::Default().allocate(nullptr, size, alignment);
  };
  allocator.free = [](void* user_data, void* data, int64_t size, int64_t alignment) {
    static_cast<Host*>(user_data)->left += size;
    HostAllocator::Default().free(nullptr, data, size, alignment);
  };
  {
    const Ref<MemoryPool> pool = MemoryPool::Create(CreateDevice(DeviceId{}, allocator).value()).value();
    void* a = pool->Allocate(3072).value();
    CHECK(pool->Allocate(2048).status().code() == StatusCode::kOutOfMemory);
    pool->Free(a, 3072);
    CHECK(pool->stats().bytes_kept == 3072);
    void* b = pool->Allocate(2048).value();  // fits after the kept block went back
    CHECK(pool->stats().bytes_kept == 0);
    CHECK(pool->stats().bytes_in_use == 2048);
    pool->Free(b, 2048);
  }
  CHECK(host.left == 4096);
}

TEST_CASE("storage keeps the pool and the device alive") {
  Tensor tensor;
  {
    const Ref<MemoryPool> pool = Pool(MemoryPool::kNoLimit, DeviceKind::kCpu);
    tensor =
        Tensor::InStorage(pool->AllocateStorage(64).value(), DataType::Float(32), std::vector<int64_t>{16}).value();
  }
  tensor.MutableElements<float>()[15] = 1;
  CHECK(tensor.device() == DeviceId{});
}

TEST_CASE("random use from several threads stays inside the bound and ends empty") {
  const Ref<MemoryPool> pool = Pool(1 << 20, DeviceKind::kCpu);
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; ++id) {
    threads.emplace_back([&pool, id] {
      std::mt19937 random(id);
      std::vector<Ref<Storage>> live;
      for (int i = 0; i < 2000; ++i) {
        if (live.size() > 20 || (random() % 3 == 0 && !live.empty())) {
          std::swap(live[random() % live.size()], live.back());
          live.pop_back();
        } else {
          Result<Ref<Storage>> storage = pool->AllocateStorage(random() % 50000);
          if (!storage.ok()) continue;
          if ((*storage)->size_bytes() > 0) static_cast<uint8_t*>((*storage)->data())[(*storage)->size_bytes() - 1] = 1;
          live.push_back(*storage);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(pool->stats().bytes_in_use == 0);
  CHECK(pool->stats().peak_bytes_in_use <= 1 << 20);
}

}  // namespace
}  // namespace ingot
