// The table of formats, and conversions between their codes and double. Every value of every format here is a double,
// so decoding is exact; encoding rounds once, to a multiple of the format's smallest step at the value's exponent.
#include "compiler/ir/float_format.h"

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/check.h"
#include "runtime/float4.h"

namespace ingot::ir {
namespace {

// Sources: IEEE 754-2019; "FP8 formats for deep learning" (arXiv 2209.05433); the OCP microscaling specification;
// LLVM's names for the rest.
constexpr FloatFormat kFormats[] = {
    {TypeCode::kFloat, 16, 5, 10, 15, FloatFormat::Special::kIeee},
    {TypeCode::kFloat, 32, 8, 23, 127, FloatFormat::Special::kIeee},
    {TypeCode::kFloat, 64, 11, 52, 1023, FloatFormat::Special::kIeee},
    {TypeCode::kBfloat, 16, 8, 7, 127, FloatFormat::Special::kIeee},
    {TypeCode::kFloat8E3M4, 8, 3, 4, 3, FloatFormat::Special::kIeee},
    {TypeCode::kFloat8E4M3, 8, 4, 3, 7, FloatFormat::Special::kIeee},
    {TypeCode::kFloat8E4M3B11FNUZ, 8, 4, 3, 11, FloatFormat::Special::kFnuz},
    {TypeCode::kFloat8E4M3FN, 8, 4, 3, 7, FloatFormat::Special::kFn},
    {TypeCode::kFloat8E4M3FNUZ, 8, 4, 3, 8, FloatFormat::Special::kFnuz},
    {TypeCode::kFloat8E5M2, 8, 5, 2, 15, FloatFormat::Special::kIeee},
    {TypeCode::kFloat8E5M2FNUZ, 8, 5, 2, 16, FloatFormat::Special::kFnuz},
    {TypeCode::kFloat8E8M0FNU, 8, 8, 0, 127, FloatFormat::Special::kE8M0},
    {kFloat4Code, 4, 2, 1, 1, FloatFormat::Special::kNone},
};

}  // namespace

const FloatFormat& FloatFormatOf(DataType dtype) {
  for (const FloatFormat& format : kFormats) {
    if (format.code == dtype.code && format.bits == dtype.bits) return format;
  }
  INGOT_UNREACHABLE("no floating dtype");
}

uint64_t LargestFiniteBits(const FloatFormat& f) {
  const uint64_t all = (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.special) {
    case FloatFormat::Special::kIeee:
      return all - (uint64_t{1} << f.mantissa_bits);
    case FloatFormat::Special::kFn:
    case FloatFormat::Special::kE8M0:
      return all - 1;
    case FloatFormat::Special::kFnuz:
    case FloatFormat::Special::kNone:
      return all;
  }
  INGOT_UNREACHABLE();
}

uint64_t NanBits(const FloatFormat& f) {
  const uint64_t all = (uint64_t{1} << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.special) {
    case FloatFormat::Special::kIeee:
      return all - (uint64_t{1} << f.mantissa_bits) + 1 + (uint64_t{1} << (f.mantissa_bits - 1));
    case FloatFormat::Special::kFn:
    case FloatFormat::Special::kE8M0:
      return all;
    case FloatFormat::Special::kFnuz:
    case FloatFormat::Special::kNone:
      return all + 1;
  }
  INGOT_UNREACHABLE();
}

namespace {

uint64_t EncodeMagnitude(const FloatFormat& f, double magnitude) {
  const uint64_t overflow = f.special == FloatFormat::Special::kIeee   ? LargestFiniteBits(f) + 1
                            : f.special == FloatFormat::Special::kNone ? LargestFiniteBits(f)
                                                                       : NanBits(f);
  if (std::isinf(magnitude)) return overflow;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  const int least = f.special == FloatFormat::Special::kE8M0 ? -f.bias : 1 - f.bias;
  const int effective = std::max(exponent - 1, least);
  // How many of the smallest steps at this exponent; the default rounding mode is to nearest, ties to even.
  const auto steps = static_cast<uint64_t>(std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - effective)));
  if (f.special == FloatFormat::Special::kE8M0) {
    const uint64_t bits = static_cast<uint64_t>(effective + f.bias) + (steps > 1 ? 1 : 0);
    return bits > LargestFiniteBits(f) ? NanBits(f) : bits;
  }
  // A normal number's leading one adds 1 to the exponent field, as a carry out of the mantissa does.
  const uint64_t bits = (static_cast<uint64_t>(effective + f.bias - 1) << f.mantissa_bits) + steps;
  return bits <= LargestFiniteBits(f) ? bits : overflow;
}

}  // namespace

uint64_t EncodeFloat(DataType dtype, double value) {
  if (dtype.code == TypeCode::kFloat && dtype.bits == 64) return std::bit_cast<uint64_t>(value);
  if (dtype.code == TypeCode::kFloat && dtype.bits == 32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const FloatFormat& f = FloatFormatOf(dtype);
  if (f.special == FloatFormat::Special::kE8M0) {
    if (value == 0) return 0;
    return std::isnan(value) || value < 0 ? NanBits(f) : EncodeMagnitude(f, value);
  }
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (f.bits - 1) : 0;
  if (std::isnan(value)) {
    const bool has_sign = f.special == FloatFormat::Special::kIeee || f.special == FloatFormat::Special::kFn;
    return has_sign ? sign | NanBits(f) : NanBits(f);
  }
  if (value == 0) return f.special == FloatFormat::Special::kFnuz ? 0 : sign;
  const uint64_t magnitude = EncodeMagnitude(f, std::fabs(value));
  if (f.special == FloatFormat::Special::kFnuz && (magnitude == 0 || magnitude == NanBits(f))) return magnitude;
  return sign | magnitude;
}

double DecodeFloat(DataType dtype, uint64_t bits) {
  if (dtype.code == TypeCode::kFloat && dtype.bits == 64) return std::bit_cast<double>(bits);
  if (dtype.code == TypeCode::kFloat && dtype.bits == 32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const FloatFormat& f = FloatFormatOf(dtype);
  if (f.special == FloatFormat::Special::kE8M0) {
    return bits == NanBits(f) ? std::numeric_limits<double>::quiet_NaN()
                              : std::ldexp(1.0, static_cast<int>(bits) - f.bias);
  }
  const uint64_t sign_bit = uint64_t{1} << (f.bits - 1);
  if (f.special == FloatFormat::Special::kFnuz && bits == NanBits(f)) return std::numeric_limits<double>::quiet_NaN();
  const double sign = (bits & sign_bit) != 0 ? -1.0 : 1.0;
  const uint64_t magnitude = bits & (sign_bit - 1);
  if (magnitude > LargestFiniteBits(f)) {
    const bool infinite = f.special == FloatFormat::Special::kIeee && magnitude == LargestFiniteBits(f) + 1;
    return infinite ? sign * std::numeric_limits<double>::infinity()
                    : std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  }
  const uint64_t mantissa_mask = (uint64_t{1} << f.mantissa_bits) - 1;
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const uint64_t mantissa = magnitude & mantissa_mask;
  const double significand =
      static_cast<double>(exponent == 0 ? mantissa : mantissa | (uint64_t{1} << f.mantissa_bits));
  return sign * std::ldexp(significand, (exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits);
}

double RoundToFloat(DataType dtype, double value) {
  if (dtype.code == TypeCode::kFloat && dtype.bits == 64) return value;
  if (dtype.code == TypeCode::kFloat && dtype.bits == 32) return static_cast<float>(value);
  return DecodeFloat(dtype, EncodeFloat(dtype, value));
}

double LargestFinite(DataType dtype) { return DecodeFloat(dtype, LargestFiniteBits(FloatFormatOf(dtype))); }

int64_t WrapInt(DataType dtype, int64_t value) {
  if (dtype.is_bool()) return value != 0 ? 1 : 0;
  if (dtype.bits >= 64) return value;
  const auto kept = static_cast<uint64_t>(value) << (64 - dtype.bits);
  return dtype.is_int() ? static_cast<int64_t>(kept) >> (64 - dtype.bits)
                        : static_cast<int64_t>(kept >> (64 - dtype.bits));
}

}  // namespace ingot::ir
