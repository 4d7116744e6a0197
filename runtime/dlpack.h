// DLPack in and out: how tensors cross the border to other libraries without a copy. In: a plain ingot_dl_tensor that
// the caller keeps alive, or a managed one, which is taken over: its deleter runs exactly once, when the last tensor
// that shares it goes, or at once when it is refused; a null deleter is legal. Out: managed tensors that share the
// storage. Callers decide which devices they accept; memory is never copied or read here.
#pragma once

#include "runtime/dlpack_abi.h"
#include "runtime/tensor.h"

namespace ingot {

// Checks and describes without allocating (the warm path of a call). Refused by name: rank above 8, negative dims or
// strides, sizes beyond 64 bits, unknown dtypes and devices, data missing or an offset beyond the address space.
Result<TensorView> ViewFromDLTensor(const ingot_dl_tensor& tensor);
// The same as a Tensor that borrows its data: the caller keeps it alive as long as the tensor is used.
Result<Tensor> BorrowDLTensor(const ingot_dl_tensor& tensor);

// Both take over `managed`, also when they fail. The versioned one keeps the read-only flag, and refuses other major
// versions and padded sub-byte elements by name.
Result<Tensor> ImportDLPack(ingot_dl_managed_tensor* managed);
Result<Tensor> ImportDLPack(ingot_dl_managed_tensor_versioned* managed);

// The result belongs to the caller, who calls its deleter once. Strides are always given, byte_offset is 0 (folded
// into data, since many consumers ignore it). The legacy form cannot say read-only, so it refuses read-only tensors.
Result<ingot_dl_managed_tensor*> ExportDLPack(const Tensor& tensor);
Result<ingot_dl_managed_tensor_versioned*> ExportDLPackVersioned(const Tensor& tensor);

}  // namespace ingot
