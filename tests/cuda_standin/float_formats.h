// Rounding of exact or sticky values to the float formats of PTX, by arithmetic on bits: no rounding mode of the host
// takes part. Written apart from runtime/small_float.h, against which it is tested.
#pragma once

#include <cstdint>

#include "tests/cuda_standin/program.h"

namespace ingot::ptx {

struct FloatFormat {
  int exponent_bits, mantissa_bits;
};
constexpr FloatFormat kHalfFormat{5, 10}, kBf16Format{8, 7}, kTf32Format{8, 10}, kFloatFormat{8, 23};

// The bits of `value` in a format that has infinities. A NaN becomes the canonical one (all bits but the sign).
uint32_t RoundTo(FloatFormat format, double value, Rounding rounding);
// Exact.
double Widen(FloatFormat format, uint32_t bits);
// a * b + c, inexact results with their last bit set (rounding to odd), so that a further rounding to a format of at
// most 24 bits is the only one. a and b have at most 26 significant bits.
double FusedToOdd(double a, double b, double c);

inline double HalfValue(uint16_t bits) { return Widen(kHalfFormat, bits); }
inline double Bf16Value(uint16_t bits) { return Widen(kBf16Format, bits); }

}  // namespace ingot::ptx
