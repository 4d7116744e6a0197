// DeviceId: which device memory lives on: DLPack's (kind, index). Text form "cpu", "cuda:1"; the index is left out
// when zero.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/status.h"

namespace ingot {

// DLPack's DLDeviceType, as far as Ingot knows it.
enum class DeviceKind : int32_t {
  kCpu = 1,
  kCuda = 2,
  kCudaHost = 3,      // host memory pinned by CUDA: the CPU reads it
  kNull = 12,         // DLPack's extension device
  kCudaManaged = 13,  // reachable from both
};

struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;
  int32_t index = 0;

  // "cpu", "null:0", "cuda:1"; an error lists the known kinds.
  static Result<DeviceId> Parse(std::string_view text);
  bool IsKnown() const;
  // True where the host's code may follow the pointer.
  bool is_host_accessible() const {
    return kind == DeviceKind::kCpu || kind == DeviceKind::kCudaHost || kind == DeviceKind::kCudaManaged;
  }
  std::string ToString() const;

  friend constexpr bool operator==(DeviceId, DeviceId) = default;
};

}  // namespace ingot
