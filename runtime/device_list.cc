// The rows of the device list. A new device adds its row here.
#include "runtime/device_list.h"

#include <string>

#include "runtime/cpu_device.h"
#ifdef INGOT_CUDA
#include "runtime/cuda_device.h"
#endif
#include "runtime/null_device.h"

namespace ingot {
namespace {

constexpr DeviceRow kDevices[] = {
    {DeviceKind::kCpu, "cpu", CreateCpuDevice},
    {DeviceKind::kNull, "null", CreateNullDevice},
#ifdef INGOT_CUDA
    {DeviceKind::kCuda, "cuda", CreateDefaultCudaDevice},
#endif
};

}  // namespace

std::span<const DeviceRow> DeviceList() { return kDevices; }

Result<Ref<Device>> CreateDevice(DeviceId id, const HostAllocator& host_allocator) {
  std::string known;
  for (const DeviceRow& row : kDevices) {
    if (row.kind == id.kind) return row.create(id.index, host_allocator);
    StrAppend(known, {(known.empty() ? "" : ", "), row.name});
  }
  return Status(StatusCode::kNotFound, {"no device ", id.ToString(), "; there are ", known});
}

}  // namespace ingot
