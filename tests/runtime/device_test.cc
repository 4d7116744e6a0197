// The conformance suite: every row of the device list must pass all of it. A device that this machine lacks prints
// SKIP.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/device_list.h"
#include "runtime/tensor.h"

namespace ingot {
namespace {

template <typename Body>
void ForEachDevice(Body body) {
  for (const DeviceRow& row : DeviceList()) {
    CAPTURE(std::string(row.name));
    Result<Ref<Device>> device = row.create(0, HostAllocator::Default());
    if (!device.ok() && device.status().code() == StatusCode::kNotFound) {
      MESSAGE("SKIP: " << std::string(row.name) << ": " << device.status().message());
      continue;
    }
    REQUIRE_MESSAGE(device.ok(), device.status().message());
    body(**device);
  }
}

// One block of device memory, freed at the end.
struct Block {
  Device& device;
  int64_t size_bytes;
  void* data;
  Block(Device& d, int64_t size) : device(d), size_bytes(size), data(d.Allocate(size).value()) {}
  ~Block() { device.Free(data, size_bytes); }
  Block(const Block&) = delete;
};

std::vector<uint8_t> Pattern(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return bytes;
}

TEST_CASE("device conformance: identity") {
  ForEachDevice([](Device& device) {
    CHECK(device.id().IsKnown());
    CHECK(DeviceId::Parse(device.id().ToString()).value() == device.id());
    CHECK_FALSE(device.description().empty());
  });
}

TEST_CASE("device conformance: memory is aligned, distinct and may be empty") {
  ForEachDevice([](Device& device) {
    Block a(device, 100), b(device, 0), c(device, 1);
    for (const Block* block : {&a, &b, &c}) {
      CHECK(block->data != nullptr);
      CHECK(reinterpret_cast<uintptr_t>(block->data) % kTensorAlignment == 0);
    }
    CHECK(a.data != b.data);
    CHECK(b.data != c.data);
  });
}

TEST_CASE("device conformance: what cannot be allocated is out of memory, and the device goes on") {
  ForEachDevice([](Device& device) {
    for (const int64_t size : {int64_t{1} << 60, std::numeric_limits<int64_t>::max(), int64_t{-1}}) {
      const Result<void*> block = device.Allocate(size);
      CHECK(block.status().code() == StatusCode::kOutOfMemory);
      CHECK(block.status().message().find(std::to_string(size)) != std::string::npos);
    }
    Block after(device, 64);
    CHECK(after.data != nullptr);
  });
}

TEST_CASE("device conformance: copies keep every byte, on every stream") {
  ForEachDevice([](Device& device) {
    const Stream created = device.CreateStream().value();
    for (const Stream stream : {Stream(), created}) {
      for (const int64_t size : {0, 1, 63, 4096, 1000003}) {
        const std::vector<uint8_t> source = Pattern(static_cast<size_t>(size));
        std::vector<uint8_t> target(source.size() + 2, 0xee);
        Block a(device, size), b(device, size);
        REQUIRE(device.CopyFromHost(a.data, source.data(), size, stream).ok());
        REQUIRE(device.CopyWithin(b.data, a.data, size, stream).ok());
        REQUIRE(device.CopyToHost(target.data() + 1, b.data, size, stream).ok());
        REQUIRE(device.Synchronize(stream).ok());
        CHECK(std::equal(source.begin(), source.end(), target.begin() + 1));
        CHECK(target.front() == 0xee);
        CHECK(target.back() == 0xee);
      }
    }
    device.DestroyStream(created);
  });
}

TEST_CASE("device conformance: parts of a block can be copied") {
  ForEachDevice([](Device& device) {
    Block block(device, 16);
    const std::vector<uint8_t> source = Pattern(16);
    std::vector<uint8_t> target(4);
    REQUIRE(device.CopyFromHost(block.data, source.data(), 16, Stream()).ok());
    REQUIRE(device.CopyToHost(target.data(), static_cast<uint8_t*>(block.data) + 12, 4, Stream()).ok());
    REQUIRE(device.Synchronize(Stream()).ok());
    CHECK(std::equal(target.begin(), target.end(), source.begin() + 12));
  });
}

TEST_CASE("device conformance: devices without kernels say so by name") {
  ForEachDevice([](Device& device) {
    const uint8_t garbage[64] = {};
    const Status load = device.LoadImage(garbage).status();
    CHECK_FALSE(load.ok());
    if (device.launches_kernels()) return;
    const Status launch = device.LaunchKernel(nullptr, LaunchConfig(), {}, {}, Stream());
    CHECK(launch.code() == StatusCode::kInvalidArgument);
    for (const Status& status : {load, launch}) {
      CHECK(status.message().starts_with(device.id().ToString().substr(0, device.id().ToString().find(':'))));
    }
  });
}

TEST_CASE("device conformance: indexes that do not exist are not found") {
  for (const DeviceRow& row : DeviceList()) {
    CAPTURE(std::string(row.name));
    CHECK(row.create(-1, HostAllocator::Default()).status().code() == StatusCode::kNotFound);
  }
  CHECK(CreateDevice(DeviceId{DeviceKind::kCpu, 1}).status().code() == StatusCode::kNotFound);
  CHECK(CreateDevice(DeviceId{static_cast<DeviceKind>(99), 0}).status().code() == StatusCode::kNotFound);
}

TEST_CASE("the null device refuses copies outside of its memory") {
  const Ref<Device> device = CreateDevice(DeviceId{DeviceKind::kNull, 0}).value();
  uint8_t host[64] = {};
  Block block(*device, 32);
  auto* start = static_cast<uint8_t*>(block.data);
  CHECK(device->CopyFromHost(start + 31, host, 1, Stream()).ok());
  CHECK_FALSE(device->CopyFromHost(start + 31, host, 2, Stream()).ok());
  CHECK_FALSE(device->CopyFromHost(host, host + 32, 1, Stream()).ok());
  CHECK_FALSE(device->CopyToHost(host, start, 33, Stream()).ok());
  CHECK_FALSE(device->CopyToHost(host, start, -1, Stream()).ok());
  CHECK_FALSE(device->CopyWithin(start, host, 1, Stream()).ok());
}

TEST_CASE("device memory on the host comes from the embedder's allocator") {
  struct Counts {
    int64_t live_bytes = 0;
    int calls = 0;
  } counts;
  HostAllocator allocator;
  allocator.user_data = &counts;
  allocator.allocate = [](void* user_data, int64_t size, int64_t alignment) {
    auto* c = static_cast<Counts*>(user_data);
    c->live_bytes += size;
    ++c->calls;
    return HostAllocator::Default().allocate(nullptr, size, alignment);
  };
  allocator.free = [](void* user_data, void* data, int64_t size, int64_t alignment) {
    static_cast<Counts*>(user_data)->live_bytes -= size;
    HostAllocator::Default().free(nullptr, data, size, alignment);
  };
  const Ref<Device> device = CreateDevice(DeviceId{}, allocator).value();
  { Block a(*device, 100), b(*device, 0); }
  CHECK(counts.calls == 2);
  CHECK(counts.live_bytes == 0);
}

}  // namespace
}  // namespace ingot
