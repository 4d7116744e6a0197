// The bits of every floating dtype on the host: rounding, encoding and decoding by one table of formats. Constant
// folding, constants and the interpreter use it. Exact, not fast.
#pragma once

#include <cstdint>

#include "runtime/data_type.h"

namespace ingot::ir {

struct FloatFormat {
  // How the bit patterns above the finite values are used.
  enum class Special : uint8_t {
    kIeee,  // infinities, then NaNs
    kFn,    // no infinity; only all ones is NaN
    kFnuz,  // no infinity, no negative zero; its pattern is the one NaN
    kE8M0,  // powers of two alone: no sign, no zero; all ones is NaN
    kNone,  // numbers alone
  };
  TypeCode code;
  int bits, exponent_bits, mantissa_bits, bias;
  Special special;
};
const FloatFormat& FloatFormatOf(DataType dtype);
// The code (sign bit 0) of the largest finite value, and of a NaN; a kFnuz format's NaN is its sign bit alone, and so is
// negative zero, which stands for NaN where a format has none.
uint64_t LargestFiniteBits(const FloatFormat& format);
uint64_t NanBits(const FloatFormat& format);

// The nearest value of the dtype (ties to even). Beyond the largest finite value: infinity where the format has one,
// else NaN, else (kNone) the largest value.
double RoundToFloat(DataType dtype, double value);
// EncodeFloat gives the rounded value's code in the low bits of the result; DecodeFloat gives the value of a code.
uint64_t EncodeFloat(DataType dtype, double value);
double DecodeFloat(DataType dtype, uint64_t bits);
double LargestFinite(DataType dtype);

// The low dtype.bits bits of the value, sign- or zero-extended (uint64: the bits themselves; bool: 1 unless it is 0).
int64_t WrapInt(DataType dtype, int64_t value);

}  // namespace ingot::ir
