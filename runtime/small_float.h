// Small floats: float16, bfloat16, the float8 family and float4 as bit patterns, to and from double. Decoding is exact;
// encoding rounds once, to nearest even, on any host. Values out of range become infinity, or NaN in formats
// without one; float4, which has neither, takes its largest number, and negative zero for NaN. Also wraps float32 and float64, so that one pair of functions serves every floating
// DataType. No arithmetic happens here.
#pragma once

#include <cstdint>

#include "runtime/data_type.h"

namespace ingot {

// The value of one element of a floating dtype, given its bits in the low end of `bits`.
double DecodeFloat(DataType dtype, uint64_t bits);
// The bits of the nearest element of a floating dtype.
uint64_t EncodeFloat(DataType dtype, double value);

}  // namespace ingot
