// What a device has is compact; a strided tensor of the host goes through a compact one.
#include "vm/run/device_copies.h"

#include <algorithm>

#include "runtime/tensor.h"

namespace ingot::vm {
namespace {

Result<Tensor> CompactOnHost(const TensorView& like) { return Tensor::Allocate(like.dtype, like.shape()); }

}  // namespace

Status CopyAcross(const Devices& devices, const TensorView& from, const TensorView& to, bool may_be_later) {
  const bool from_host = from.device.is_host_accessible(), to_host = to.device.is_host_accessible();
  if (from_host && to_host) return CopyElements(from, to);
  const TensorView& on_device = from_host ? to : from;
  const auto found = std::ranges::find(devices.ids(), on_device.device);
  if (found == devices.ids().end()) {
    return Status(StatusCode::kBadInput, {"a tensor is on ", on_device.device.ToString(), ", and the program is not"});
  }
  if ((!from_host && !from.is_compact) || (!to_host && !to.is_compact)) {
    return Status(StatusCode::kBadInput, {"a tensor on ", on_device.device.ToString(), " is strided"});
  }
  Device& device = devices.device(static_cast<size_t>(found - devices.ids().begin()));
  if (from_host) {
    if (from.is_compact && may_be_later) return device.CopyFromHostLater(to.data, from.data, from.size_bytes);
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
