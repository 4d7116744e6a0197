// Creates the devices of a program and their pools, and zeroes memory on any of them.
#include "vm/run/devices.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/device_list.h"
#ifdef INGOT_CUDA
#include "vm/run/device_copies.h"
#include "vm/run/executable.h"
#endif

namespace ingot::vm {

Status Devices::Bind(const Program& program, int64_t max_memory_bytes) {
  const int64_t limit = max_memory_bytes > 0 ? max_memory_bytes : MemoryPool::kNoLimit;
  for (const VirtualDevice& device : program.devices) {
    INGOT_ASSIGN_OR_RETURN(DeviceId id, DeviceId::Parse(device.kind));
    id.index = device.index;
#ifdef INGOT_CUDA
    if (id.kind == DeviceKind::kCuda && __builtin_add_overflow(id.index, first_gpu_, &id.index)) {
      return Status(StatusCode::kNotFound, {"there is no GPU ", device.index, " after ", first_gpu_});
    }
#endif
    ids_.push_back(id);
    Bound& bound = bound_.emplace_back();
    INGOT_ASSIGN_OR_RETURN(bound.device, CreateDevice(id, allocator_));
    INGOT_ASSIGN_OR_RETURN(bound.pool, MemoryPool::Create(bound.device, limit));
    if (!id.is_host_accessible()) zeros_.resize(1 << 16);
  }
  return Status();
}

#ifdef INGOT_CUDA
Status Devices::CopyTensor(const TensorView& from, const TensorView& to, bool may_be_later) const {
  return CopyAcross(*this, from, to, may_be_later);
}

void Devices::ForgetCopies() const {
  for (const Bound& bound : bound_) bound.device->ForgetCopies();
}

Status Devices::WaitForCopies() const {
  for (const Bound& bound : bound_) INGOT_RETURN_IF_ERROR(bound.device->Synchronize({}));
  return Status();
}

Status Devices::Choose(const Program& program, std::optional<DeviceId> wanted) {
  if (!wanted) return Status();
  const bool is_for_gpu = std::ranges::any_of(program.devices, [](const VirtualDevice& device) {
    const Result<DeviceId> id = DeviceId::Parse(device.kind);
    return id.ok() && id->kind == DeviceKind::kCuda;
  });
  if (wanted->kind == DeviceKind::kCuda && is_for_gpu) {
    first_gpu_ = wanted->index;
    return Status();
  }
  if (wanted->kind == DeviceKind::kCpu && !is_for_gpu) return Status();
  std::string message = StrCat({"there are no kernels for ", wanted->ToString(), "; they are for "});
  message += is_for_gpu ? "CUDA" : "the CPU";
  const char* before = ": ";
  for (const KernelImage& image : program.images) {
    if (is_for_gpu && image.format == ImageFormat::kPtx) StrAppend(message, {std::exchange(before, ", "), image.arch});
  }
  return Status(StatusCode::kUnsupportedFile, std::move(message));
}

Status Devices::LoadCode(const Executable& executable) {
  for (const Bound& bound : bound_) bound.device->UseThreads(executable.instance()->pool());
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
  const int64_t piece = std::ssize(zeros_);
  for (int64_t at = 0; at < bytes; at += piece) {
    const int64_t size = std::min(piece, bytes - at);
    INGOT_RETURN_IF_ERROR(target.CopyFromHost(static_cast<std::byte*>(data) + at, zeros_.data(), size, {}));
  }
  return target.Synchronize({});
}

}  // namespace ingot::vm
