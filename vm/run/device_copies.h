// Copies of whole tensors between the host and devices, for arguments and results that are elsewhere than the program
// has them. Used in builds with INGOT_CUDA, by Devices.
#pragma once

#include "runtime/status.h"
#include "runtime/tensor.h"
#include "vm/run/devices.h"

namespace ingot::vm {

// As Devices::CopyTensor says.
Status CopyAcross(const Devices& devices, const TensorView& from, const TensorView& to, bool may_be_later);

}  // namespace ingot::vm
