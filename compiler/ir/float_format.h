// The bits of every floating dtype on the host: rounding, encoding and decoding by one table of formats. Constant
// folding, constants and the interpreter use it. Exact, not fast.
#pragma once

#include <cstdint>

#include "runtime/data_type.h"

namespace ingot::ir {

// The nearest value of the dtype (ties to even). Beyond the largest finite value: infinity where the format has one,
// else NaN.
double RoundToFloat(DataType dtype, double value);
// The value's bits in the low bits of the result, and back.
uint64_t EncodeFloat(DataType dtype, double value);
double DecodeFloat(DataType dtype, uint64_t bits);
double LargestFinite(DataType dtype);

// The value of the low `bits` bits of an integer dtype: sign- or zero-extended (uint64: the bits themselves).
int64_t WrapInt(DataType dtype, int64_t value);

}  // namespace ingot::ir
