// All formats but E8M0, which is an exponent alone, follow one scheme: sign, exponent, mantissa with an implicit
// leading one, subnormals below exponent 1. They differ in widths, bias and in what the largest codes mean (IEEE 754;
// the OCP 8-bit formats "FN"; the "FNUZ" formats without negative zero).
#include "runtime/small_float.h"

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/check.h"
#include "runtime/float4.h"

namespace ingot {
namespace {

enum class Specials : uint8_t {
  kIeee,  // all-ones exponent: infinity or NaN
  kFn,    // only S.1...1.1...1 is NaN, no infinity
  kFnuz,  // only the code of -0 is NaN, no infinity
  kNone,  // numbers alone
};
struct Format {
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
};

Format FormatOf(DataType dtype) {
  if (dtype == kFloat4E2M1FN) return {2, 1, 1, Specials::kNone};
  switch (dtype.code) {
    case TypeCode::kFloat:
      INGOT_CHECK(dtype.bits == 16);
      return {5, 10, 15, Specials::kIeee};
    case TypeCode::kBfloat:
      return {8, 7, 127, Specials::kIeee};
    case TypeCode::kFloat8E3M4:
      return {3, 4, 3, Specials::kIeee};
    case TypeCode::kFloat8E4M3:
      return {4, 3, 7, Specials::kIeee};
    case TypeCode::kFloat8E4M3B11FNUZ:
      return {4, 3, 11, Specials::kFnuz};
    case TypeCode::kFloat8E4M3FN:
      return {4, 3, 7, Specials::kFn};
    case TypeCode::kFloat8E4M3FNUZ:
      return {4, 3, 8, Specials::kFnuz};
    case TypeCode::kFloat8E5M2:
      return {5, 2, 15, Specials::kIeee};
    case TypeCode::kFloat8E5M2FNUZ:
      return {5, 2, 16, Specials::kFnuz};
    case TypeCode::kInt:
    case TypeCode::kUInt:
    case TypeCode::kHandle:
    case TypeCode::kComplex:
    case TypeCode::kBool:
    case TypeCode::kFloat8E8M0FNU:
      break;
  }
  INGOT_UNREACHABLE("not a signed small float");
}

// E8M0 is an exponent alone: 2^(code - 127), 255 is NaN; neither sign nor zero.
double DecodeE8M0(uint64_t bits) {
  return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(bits) - 127);
}
uint64_t EncodeE8M0(double value) {
  if (!(value >= 0) || std::isinf(value)) return 255;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  int code = exponent - 1 + 127;
  if (fraction >= 0.75) ++code;  // a number halfway rounds up, as in ml_dtypes
  if (code < 0) return 0;
  return code >= 255 ? 255 : static_cast<uint64_t>(code);
}

}  // namespace

double DecodeFloat(DataType dtype, uint64_t bits) {
  if (dtype.code == TypeCode::kFloat && dtype.bits == 64) return std::bit_cast<double>(bits);
  if (dtype.code == TypeCode::kFloat && dtype.bits == 32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (dtype.code == TypeCode::kFloat8E8M0FNU) return DecodeE8M0(bits & 255);
  const Format format = FormatOf(dtype);
  const int magnitude_bits = format.exponent_bits + format.mantissa_bits;
  const uint64_t magnitude = bits & ((uint64_t{1} << magnitude_bits) - 1);
  const bool negative = ((bits >> magnitude_bits) & 1) != 0;
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const uint64_t mantissa = magnitude & ((uint64_t{1} << format.mantissa_bits) - 1);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double sign = negative ? -1.0 : 1.0;
  switch (format.specials) {
    case Specials::kIeee:
      if (exponent == (1 << format.exponent_bits) - 1) {
        return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : nan;
      }
      break;
    case Specials::kFn:
      if (magnitude == (uint64_t{1} << magnitude_bits) - 1) return nan;
      break;
    case Specials::kFnuz:
      if (negative && magnitude == 0) return nan;
      break;
    case Specials::kNone:
      break;
  }
  const uint64_t significand = exponent == 0 ? mantissa : mantissa | (uint64_t{1} << format.mantissa_bits);
  const int scale = (exponent == 0 ? 1 : exponent) - format.bias - format.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(significand), scale);
}

uint64_t EncodeFloat(DataType dtype, double value) {
  if (dtype.code == TypeCode::kFloat && dtype.bits == 64) return std::bit_cast<uint64_t>(value);
  if (dtype.code == TypeCode::kFloat && dtype.bits == 32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (dtype.code == TypeCode::kFloat8E8M0FNU) return EncodeE8M0(value);
  const Format format = FormatOf(dtype);
  const int magnitude_bits = format.exponent_bits + format.mantissa_bits;
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << magnitude_bits : 0;
  const uint64_t all_ones = (uint64_t{1} << magnitude_bits) - 1;
  const uint64_t infinity = ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  uint64_t nan = 0;
  uint64_t overflow = 0;
  uint64_t max_finite = 0;
  switch (format.specials) {
    case Specials::kIeee:
      nan = sign | infinity | (uint64_t{1} << (format.mantissa_bits - 1));
      overflow = sign | infinity;
      max_finite = infinity - 1;
      break;
    case Specials::kFn:
      nan = overflow = sign | all_ones;
      max_finite = all_ones - 1;
      break;
    case Specials::kFnuz:
      nan = overflow = uint64_t{1} << magnitude_bits;
      max_finite = all_ones;
      break;
    case Specials::kNone:
      nan = uint64_t{1} << magnitude_bits;
      overflow = sign | all_ones;
      max_finite = all_ones;
      break;
  }
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return overflow;
  const uint64_t source = std::bit_cast<uint64_t>(value) & ~(uint64_t{1} << 63);
  const int source_exponent = static_cast<int>(source >> 52);
  uint64_t code = 0;
  if (source_exponent != 0) {  // subnormal doubles are far below every format
    const uint64_t significand = (source & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
    const int exponent = source_exponent - 1023 + format.bias;
    const int shift = 52 - format.mantissa_bits + (exponent >= 1 ? 0 : 1 - exponent);
    if (shift <= 54) {
      const uint64_t half = uint64_t{1} << (shift - 1);
      const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
      uint64_t rounded = significand >> shift;
      if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;
      // A carry out of the mantissa increments the exponent by itself.
      code = rounded + (exponent >= 1 ? static_cast<uint64_t>(exponent - 1) << format.mantissa_bits : 0);
    }
  }
  if (code > max_finite) return overflow;
  if (code == 0 && format.specials == Specials::kFnuz) return 0;
  return sign | code;
}

}  // namespace ingot
