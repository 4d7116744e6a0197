// Copies of whole tensors between the host and devices, for arguments and results that are elsewhere than the program
// has them. What a device has is compact; a strided tensor of the host goes through a compact one. Built with
// INGOT_CUDA.
#include <algorithm>

#include "runtime/tensor.h"
#include "vm/run/devices.h"

namespace ingot::vm {
namespace {

Result<Tensor> CompactOnHost(const TensorView& like) { return Tensor::Allocate(like.dtype, like.shape()); }

}  // namespace

Status Devices::CopyTensor(const TensorView& from, const TensorView& to) const {
  const bool from_host = from.device.is_host_accessible(), to_host = to.device.is_host_accessible();
  if (from_host && to_host) return CopyElements(from, to);
  const TensorView& on_device = from_host ? to : from;
  const auto found = std::ranges::find(bound_, on_device.device, [](const Bound& bound) { return bound.device->id(); });
  if (found == bound_.end()) {
    return Status(StatusCode::kBadInput, {"a tensor is on ", on_device.device.ToString(), ", and the program is not"});
  }
  if ((!from_host && !from.is_compact) || (!to_host && !to.is_compact)) {
    return Status(StatusCode::kBadInput, {"a tensor on ", on_device.device.ToString(), " is strided"});
  }
  Device& device = *found->device;
  if (from_host) {
    if (from.is_compact) return device.CopyFromHost(to.data, from.data, from.size_bytes, {});
    INGOT_ASSIGN_OR_RETURN(const Tensor compact, CompactOnHost(from));
    INGOT_RETURN_IF_ERROR(CopyElements(from, compact.view()));
    return device.CopyFromHost(to.data, compact.data(), from.size_bytes, {});
  }
  if (!to_host) {
    if (from.device != to.device) return Status(StatusCode::kBadInput, "a tensor is on another GPU");
    INGOT_RETURN_IF_ERROR(device.CopyWithin(to.data, from.data, from.size_bytes, {}));
    return device.Synchronize({});
  }
  if (to.is_compact) {
    INGOT_RETURN_IF_ERROR(device.CopyToHost(to.data, from.data, from.size_bytes, {}));
    return device.Synchronize({});
  }
  INGOT_ASSIGN_OR_RETURN(const Tensor compact, CompactOnHost(to));
  INGOT_RETURN_IF_ERROR(device.CopyToHost(compact.data(), from.data, from.size_bytes, {}));
  INGOT_RETURN_IF_ERROR(device.Synchronize({}));
  return CopyElements(compact.view(), to);
}

}  // namespace ingot::vm
