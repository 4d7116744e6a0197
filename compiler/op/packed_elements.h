// Elements of less than a byte (int2, uint2, int4, uint4, float4_e2m1fn) lie packed in tensors that callers give and
// get; between these borders a graph holds each in a byte of a dtype that kernels compute with. This is which one.
#pragma once

#include "runtime/data_type.h"

namespace ingot::op {

// Whether the dtype is one of those above.
bool IsPackedElement(DataType dtype);
// The dtype of one byte that has every number of a packed one: int8, uint8, or float8_e4m3fn.
DataType ByteDataType(DataType packed);

}  // namespace ingot::op
