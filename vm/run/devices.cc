// Creates the devices of a program and their pools, and zeroes memory on any of them.
#include "vm/run/devices.h"

#include <algorithm>
#include <cstring>

#include "runtime/device_list.h"
#ifdef INGOT_CUDA
#include "vm/run/device_copies.h"
#endif

namespace ingot::vm {

Status Devices::Bind(const Program& program, int64_t max_memory_bytes) {
  const int64_t limit = max_memory_bytes > 0 ? max_memory_bytes : MemoryPool::kNoLimit;
  for (const VirtualDevice& device : program.devices) {
    INGOT_ASSIGN_OR_RETURN(DeviceId id, DeviceId::Parse(device.kind));
    id.index = device.index;
#ifdef INGOT_CUDA
    if (id.kind == DeviceKind::kCuda) id.index += first_gpu_;
#endif
    ids_.push_back(id);
    Bound& bound = bound_.emplace_back();
    INGOT_ASSIGN_OR_RETURN(bound.device, CreateDevice(id, allocator_));
    INGOT_ASSIGN_OR_RETURN(bound.pool, MemoryPool::Create(bound.device, limit));
  }
  return Status();
}

#ifdef INGOT_CUDA
Status Devices::CopyTensor(const TensorView& from, const TensorView& to) const { return CopyAcross(*this, from, to); }

Status Devices::Choose(const Program& program, std::optional<DeviceId> wanted) {
  if (!wanted) return Status();
  std::string architectures;
  for (const KernelImage& image : program.images) {
    if (image.format == ImageFormat::kPtx) StrAppend(architectures, {architectures.empty() ? "" : ", ", image.arch});
  }
  if (wanted->kind == DeviceKind::kCuda && !architectures.empty()) {
    first_gpu_ = wanted->index;
    return Status();
  }
  if (wanted->kind == DeviceKind::kCpu && architectures.empty()) return Status();
  return Status(StatusCode::kUnsupportedFile,
                {"there are no kernels for ", wanted->ToString(), "; they are for ",
                 architectures.empty() ? Text("the CPU") : Text("CUDA: "), architectures});
}

Status Devices::LoadCode(const Executable& executable) {
  INGOT_ASSIGN_OR_RETURN(code_, DeviceCode::Load(executable, *this));
  return Status();
}
#endif

Status Devices::ZeroMemory(size_t number, void* data, int64_t bytes) const {
  Device& target = device(number);
  if (target.id().is_host_accessible()) {
    if (allocator_.is_default()) {
      ZeroAligned(data, static_cast<size_t>(bytes));
    } else if (bytes > 0) {
      std::memset(data, 0, static_cast<size_t>(bytes));
    }
    return Status();
  }
  constexpr int64_t kPiece = 1 << 16;
  const std::vector<std::byte> zeros(kPiece);
  for (int64_t at = 0; at < bytes; at += kPiece) {
    const int64_t size = std::min(kPiece, bytes - at);
    INGOT_RETURN_IF_ERROR(target.CopyFromHost(static_cast<std::byte*>(data) + at, zeros.data(), size, {}));
  }
  return target.Synchronize({});
}

}  // namespace ingot::vm
