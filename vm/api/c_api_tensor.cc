// The C API, reference-counted tensor handles, which are exchanged with other libraries as DLPack.
#include "runtime/dlpack.h"
#include "vm/api/c_api_types.h"

struct ingot_tensor {
  ingot::Tensor tensor;
  // A view of it; its shape and strides are the tensor's own.
  ingot_dl_tensor view{};
};

namespace ingot::capi {
namespace {

template <typename Managed>
ingot_status* FromManaged(Managed* managed, ingot_tensor** out) {
  GiveNull(out);
  return Guard([&]() -> Status {
    if (managed == nullptr) return NullArgument("managed");
    Result<Tensor> tensor = ImportDLPack(managed);  // which takes it over, wherever it shall go
    if (out == nullptr) return NullArgument("tensor");
    if (!tensor.ok()) return std::move(tensor).status();
    auto handle = std::make_unique<ingot_tensor>();
    handle->tensor = *std::move(tensor);
    const Tensor& t = handle->tensor;
    handle->view = {t.data(),
                    {static_cast<int32_t>(t.device().kind), t.device().index},
                    t.rank(),
                    {static_cast<uint8_t>(t.dtype().code), t.dtype().bits, t.dtype().lanes},
                    const_cast<int64_t*>(t.dims().data()),
                    const_cast<int64_t*>(t.strides().data()),
                    0};
    *out = handle.release();
    return Status();
  });
}

template <typename Managed>
ingot_status* ToManaged(const ingot_tensor* tensor, Managed** out, Result<Managed*> (*convert)(const Tensor&)) {
  GiveNull(out);
  return Guard([&]() -> Status {
    if (tensor == nullptr) return NullArgument("tensor");
    if (out == nullptr) return NullArgument("managed");
    INGOT_ASSIGN_OR_RETURN(*out, convert(tensor->tensor));
    return Status();
  });
}

}  // namespace
}  // namespace ingot::capi

extern "C" {

ingot_status* ingot_tensor_from_dlpack(ingot_dl_managed_tensor_versioned* managed, ingot_tensor** tensor) {
  return ingot::capi::FromManaged(managed, tensor);
}
ingot_status* ingot_tensor_from_legacy_dlpack(ingot_dl_managed_tensor* managed, ingot_tensor** tensor) {
  return ingot::capi::FromManaged(managed, tensor);
}
ingot_status* ingot_tensor_to_dlpack(const ingot_tensor* tensor, ingot_dl_managed_tensor_versioned** managed) {
  return ingot::capi::ToManaged(tensor, managed, &ingot::ExportDLPackVersioned);
}
ingot_status* ingot_tensor_to_legacy_dlpack(const ingot_tensor* tensor, ingot_dl_managed_tensor** managed) {
  return ingot::capi::ToManaged(tensor, managed, &ingot::ExportDLPack);
}
const ingot_dl_tensor* ingot_tensor_view(const ingot_tensor* tensor) {
  return tensor == nullptr ? nullptr : &tensor->view;
}
void ingot_tensor_release(ingot_tensor* tensor) { delete tensor; }

}  // extern "C"
