// Overwriting a view with another checked description: TensorView::Make and ViewFromDLTensor without moving a view. For
// the warm path of a call, which keeps its views.
#pragma once

#include "runtime/dlpack_abi.h"
#include "runtime/tensor.h"

namespace ingot {

// A refused description leaves the view in an unspecified state; the old one is lost.
Status AssignView(TensorView& view, void* data, DataType dtype, std::span<const int64_t> dims, const int64_t* strides,
                  DeviceId device);

// The same for a DLPack tensor; it refuses what ViewFromDLTensor refuses (runtime/dlpack.cc).
Status AssignFromDLTensor(const ingot_dl_tensor& tensor, TensorView& view);

}  // namespace ingot
