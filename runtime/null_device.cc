// A map from address to size of the live blocks, against which every free and every copy is checked.
#include "runtime/null_device.h"

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "runtime/tensor.h"

namespace ingot {
namespace {

class NullDevice final : public Device {
 public:
  NullDevice(int32_t index, const HostAllocator& allocator) : index_(index), allocator_(allocator) {}
  ~NullDevice() override { INGOT_CHECK(blocks_.empty(), "memory of the null device was not freed"); }

  DeviceId id() const override { return {DeviceKind::kNull, index_}; }
  std::string_view description() const override { return "null device (memory without compute)"; }
  bool launches_kernels() const override { return false; }

  Result<void*> Allocate(int64_t size_bytes) override {
    const auto out_of_memory = [&] {
      return Status::OutOfMemory({"null: out of memory: ", size_bytes, " bytes requested"});
    };
    if (size_bytes < 0) return out_of_memory();
    void* data = allocator_.allocate(allocator_.user_data, AtLeastOne(size_bytes), kTensorAlignment);
    if (data == nullptr) return out_of_memory();
    try {
      std::lock_guard lock(mutex_);
      blocks_.emplace(reinterpret_cast<uintptr_t>(data), size_bytes);
    } catch (const std::bad_alloc&) {
      allocator_.free(allocator_.user_data, data, AtLeastOne(size_bytes), kTensorAlignment);
      return out_of_memory();
    }
    return data;
  }

  void Free(void* data, int64_t size_bytes) override {
    {
      std::lock_guard lock(mutex_);
      const auto block = blocks_.find(reinterpret_cast<uintptr_t>(data));
      INGOT_CHECK(block != blocks_.end(), "freed what the null device did not allocate");
      INGOT_CHECK(block->second == size_bytes, "freed with another size than allocated");
      blocks_.erase(block);
    }
    allocator_.free(allocator_.user_data, data, AtLeastOne(size_bytes), kTensorAlignment);
  }

  Result<Stream> CreateStream() override { return Stream(); }
  void DestroyStream(Stream) override {}

  Status CopyFromHost(void* to, const void* from, int64_t size_bytes, Stream) override {
    INGOT_RETURN_IF_ERROR(CheckRange(to, size_bytes));
    return Copy(to, from, size_bytes);
  }
  Status CopyToHost(void* to, const void* from, int64_t size_bytes, Stream) override {
    INGOT_RETURN_IF_ERROR(CheckRange(from, size_bytes));
    return Copy(to, from, size_bytes);
  }
  Status CopyWithin(void* to, const void* from, int64_t size_bytes, Stream) override {
    INGOT_RETURN_IF_ERROR(CheckRange(to, size_bytes));
    INGOT_RETURN_IF_ERROR(CheckRange(from, size_bytes));
    return Copy(to, from, size_bytes);
  }
  Status Synchronize(Stream) override { return Status(); }

  Result<Ref<DeviceImage>> LoadImage(std::span<const uint8_t>) override { return DoesNotCompute(); }
  Status LaunchKernel(void*, const LaunchConfig&, std::span<void* const>, std::span<const int64_t>, Stream) override {
    return DoesNotCompute();
  }

 private:
  static int64_t AtLeastOne(int64_t size_bytes) { return size_bytes > 0 ? size_bytes : 1; }
  static Status DoesNotCompute() { return Status(StatusCode::kInvalidArgument, "null: this device runs no kernels"); }
  static Status Copy(void* to, const void* from, int64_t size_bytes) {
    if (size_bytes > 0) std::memcpy(to, from, static_cast<size_t>(size_bytes));
    return Status();
  }

  // [data, data + size_bytes) must lie inside one live block.
  Status CheckRange(const void* data, int64_t size_bytes) {
    const auto address = reinterpret_cast<uintptr_t>(data);
    std::lock_guard lock(mutex_);
    auto block = blocks_.upper_bound(address);
    if (block != blocks_.begin()) {
      --block;
      const uintptr_t offset = address - block->first;
      const auto block_bytes = static_cast<uint64_t>(block->second);
      if (size_bytes >= 0 && offset <= block_bytes && static_cast<uint64_t>(size_bytes) <= block_bytes - offset) {
        return Status();
      }
    }
    return Status(StatusCode::kInvalidArgument,
                  {"null: a copy of ", size_bytes, " bytes outside of the device's memory"});
  }

  int32_t index_;
  HostAllocator allocator_;
  std::mutex mutex_;
  std::map<uintptr_t, int64_t> blocks_;  // address -> size in bytes of what is allocated
};

}  // namespace

Result<Ref<Device>> CreateNullDevice(int32_t index, const HostAllocator& allocator) {
  if (index < 0) return Status(StatusCode::kNotFound, {"null:", index, ": no such device"});
  auto* device = new (std::nothrow) NullDevice(index, allocator);
  if (device == nullptr) return Status::OutOfMemory();
  return Ref<Device>::Adopt(device);
}

}  // namespace ingot
