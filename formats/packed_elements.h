// Integers of less than a byte (int1 to int4, uint1 to uint4) in tensor files. No format has a name for them, so files
// hold each in a byte, as int8 or uint8, as NumPy users do; tools pack them where a signature asks for it.
#pragma once

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::formats {

// The tensor as files hold it: elements in bytes of their own if they are packed integers, else as it is.
Result<Tensor> UnpackIntegers(const Tensor& tensor);
// The way back: the tensor with elements of `expected`, if that is a packed integer dtype and the tensor has bytes of the
// same signedness; kBadInput for a number that the dtype does not have. Any other tensor as it is.
Result<Tensor> PackIntegersAs(const Tensor& tensor, DataType expected);

}  // namespace ingot::formats
