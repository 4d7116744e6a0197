// The host as a Device: copies are memcpy, there is only the default stream, and loading or launching a kernel is
// refused, because the VM maps CPU kernels and calls them by address.
#include "runtime/cpu_device.h"

#include <cstring>
#include <new>
#include <string>

#include "runtime/tensor.h"

namespace ingot {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const HostAllocator& allocator) : allocator_(allocator) {}

  DeviceId id() const override { return {DeviceKind::kCpu, 0}; }
  std::string_view description() const override { return "host CPU"; }
  bool launches_kernels() const override { return false; }

  Result<void*> Allocate(int64_t size_bytes) override {
    void* data =
        size_bytes < 0 ? nullptr : allocator_.allocate(allocator_.user_data, AtLeastOne(size_bytes), kTensorAlignment);
    if (data == nullptr) {
      return Status::OutOfMemory({"cpu: out of memory: ", size_bytes, " bytes requested"});
    }
    return data;
  }
  void Free(void* data, int64_t size_bytes) override {
    allocator_.free(allocator_.user_data, data, AtLeastOne(size_bytes), kTensorAlignment);
  }

  Result<Stream> CreateStream() override { return Stream(); }
  void DestroyStream(Stream) override {}

  Status CopyFromHost(void* to, const void* from, int64_t size_bytes, Stream) override {
    return Copy(to, from, size_bytes);
  }
  Status CopyToHost(void* to, const void* from, int64_t size_bytes, Stream) override {
    return Copy(to, from, size_bytes);
  }
  Status CopyWithin(void* to, const void* from, int64_t size_bytes, Stream) override {
    return Copy(to, from, size_bytes);
  }
  Status Synchronize(Stream) override { return Status(); }

  Result<Ref<DeviceImage>> LoadImage(std::span<const uint8_t>) override { return CallsKernelsItself(); }
  Status LaunchKernel(void*, const LaunchConfig&, std::span<void* const>, std::span<const int64_t>, Stream) override {
    return CallsKernelsItself();
  }

 private:
  static int64_t AtLeastOne(int64_t size_bytes) { return size_bytes > 0 ? size_bytes : 1; }
  static Status Copy(void* to, const void* from, int64_t size_bytes) {
    if (size_bytes > 0) std::memcpy(to, from, static_cast<size_t>(size_bytes));
    return Status();
  }
  static Status CallsKernelsItself() {
    return Status(StatusCode::kInvalidArgument, "cpu: kernels are mapped and called by address, not launched");
  }

  HostAllocator allocator_;
};

}  // namespace

Result<Ref<Device>> CreateCpuDevice(int32_t index, const HostAllocator& allocator) {
  if (index != 0) return Status(StatusCode::kNotFound, {"cpu:", index, ": there is one cpu device"});
  auto* device = new (std::nothrow) CpuDevice(allocator);
  if (device == nullptr) return Status::OutOfMemory();
  return Ref<Device>::Adopt(device);
}

}  // namespace ingot
