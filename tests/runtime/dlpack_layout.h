// The static comparison of runtime/dlpack_abi.h with a dlpack.h that the including test has included before; two
// versions of dlpack.h cannot be in one translation unit, so each has its own.
#pragma once

#include <cstddef>

#include "runtime/data_type.h"
#include "runtime/device_id.h"
#include "runtime/dlpack_abi.h"

#define INGOT_SAME_FIELD(ours, theirs, field) \
  static_assert(offsetof(ours, field) == offsetof(theirs, field) && sizeof(ours::field) == sizeof(theirs::field))

static_assert(sizeof(ingot_dl_device) == sizeof(DLDevice));
INGOT_SAME_FIELD(ingot_dl_device, DLDevice, device_type);
INGOT_SAME_FIELD(ingot_dl_device, DLDevice, device_id);
static_assert(sizeof(ingot_dl_data_type) == sizeof(DLDataType));
INGOT_SAME_FIELD(ingot_dl_data_type, DLDataType, code);
INGOT_SAME_FIELD(ingot_dl_data_type, DLDataType, bits);
INGOT_SAME_FIELD(ingot_dl_data_type, DLDataType, lanes);
static_assert(sizeof(ingot_dl_tensor) == sizeof(DLTensor));
INGOT_SAME_FIELD(ingot_dl_tensor, DLTensor, data);
INGOT_SAME_FIELD(ingot_dl_tensor, DLTensor, device);
INGOT_SAME_FIELD(ingot_dl_tensor, DLTensor, ndim);
INGOT_SAME_FIELD(ingot_dl_tensor, DLTensor, dtype);
INGOT_SAME_FIELD(ingot_dl_tensor, DLTensor, shape);
INGOT_SAME_FIELD(ingot_dl_tensor, DLTensor, strides);
INGOT_SAME_FIELD(ingot_dl_tensor, DLTensor, byte_offset);
static_assert(sizeof(ingot_dl_managed_tensor) == sizeof(DLManagedTensor));
INGOT_SAME_FIELD(ingot_dl_managed_tensor, DLManagedTensor, dl_tensor);
INGOT_SAME_FIELD(ingot_dl_managed_tensor, DLManagedTensor, manager_ctx);
INGOT_SAME_FIELD(ingot_dl_managed_tensor, DLManagedTensor, deleter);

static_assert(int{kDLCPU} == int{INGOT_DL_CPU} && int{kDLCPU} == static_cast<int>(ingot::DeviceKind::kCpu));
static_assert(int{kDLCUDA} == int{INGOT_DL_CUDA} && int{kDLCUDA} == static_cast<int>(ingot::DeviceKind::kCuda));
static_assert(int{kDLCUDAHost} == int{INGOT_DL_CUDA_HOST} &&
              int{kDLCUDAHost} == static_cast<int>(ingot::DeviceKind::kCudaHost));
static_assert(int{kDLExtDev} == int{INGOT_DL_EXT_DEV} && int{kDLExtDev} == static_cast<int>(ingot::DeviceKind::kNull));
static_assert(int{kDLCUDAManaged} == int{INGOT_DL_CUDA_MANAGED} &&
              int{kDLCUDAManaged} == static_cast<int>(ingot::DeviceKind::kCudaManaged));
static_assert(kDLInt == static_cast<int>(ingot::TypeCode::kInt));
static_assert(kDLUInt == static_cast<int>(ingot::TypeCode::kUInt));
static_assert(kDLFloat == static_cast<int>(ingot::TypeCode::kFloat));
static_assert(kDLOpaqueHandle == static_cast<int>(ingot::TypeCode::kHandle));
static_assert(kDLBfloat == static_cast<int>(ingot::TypeCode::kBfloat));
static_assert(kDLComplex == static_cast<int>(ingot::TypeCode::kComplex));
