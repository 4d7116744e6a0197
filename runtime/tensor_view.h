// Describing a tensor in the place of another: what TensorView::Make does, without moving the view. For the warm path
// of a call, which keeps its views.
#pragma once

#include "runtime/dlpack_abi.h"
#include "runtime/tensor.h"

namespace ingot {

// What the view was is lost when the description is refused, too.
Status AssignView(TensorView& view, void* data, DataType dtype, std::span<const int64_t> dims, const int64_t* strides,
                  DeviceId device);

// So too of a DLPack tensor; refuses what ViewFromDLTensor refuses (runtime/dlpack.cc).
Status AssignFromDLTensor(const ingot_dl_tensor& tensor, TensorView& view);

}  // namespace ingot
