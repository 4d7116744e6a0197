#include "tests/cuda_standin/float_formats.h"

#include <bit>
#include <cmath>

namespace ingot::ptx {

uint32_t RoundTo(FloatFormat format, double value, Rounding rounding) {
  const int m = format.mantissa_bits;
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const uint32_t infinity = exponent_mask << m;
  const int bias = static_cast<int>(exponent_mask >> 1);
  const auto bits = std::bit_cast<uint64_t>(value);
  const bool minus = bits >> 63 != 0;
  const uint32_t sign = minus ? 1u << (m + format.exponent_bits) : 0;
  if (std::isnan(value)) return infinity | ((1u << m) - 1);
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == -1023) {  // denormal in double: below all formats here
    exponent = -1022;
  } else {
    mantissa |= uint64_t{1} << 52;
  }
  int drop = 52 - m;
  if (exponent < 1 - bias) drop += (1 - bias) - exponent;
  uint64_t kept = 0, rest = mantissa, half = 0;
  bool below_all = drop > 60;
  if (!below_all) {
    kept = mantissa >> drop;
    rest = mantissa & ((uint64_t{1} << drop) - 1);
    half = uint64_t{1} << (drop - 1);
  }
  bool up = false;
  switch (rounding) {
    case Rounding::kNearest:
      up = !below_all && (rest > half || (rest == half && (kept & 1) != 0));
      break;
    case Rounding::kNearestAway:
      up = !below_all && rest >= half;
      break;
    case Rounding::kZero:
      break;
    case Rounding::kDown:
      up = minus && rest != 0;
      break;
    case Rounding::kUp:
      up = !minus && rest != 0;
      break;
  }
  kept += up ? 1 : 0;
  // With the hidden bit as a carry into the exponent.
  uint32_t result;
  if (exponent < 1 - bias) {
    result = static_cast<uint32_t>(kept);
  } else {
    const int64_t biased = exponent + bias - 1;
    const uint64_t whole = (static_cast<uint64_t>(biased) << m) + kept;
    result = whole >= infinity ? infinity : static_cast<uint32_t>(whole);
    if (result == infinity) {
      const bool to_infinity = rounding == Rounding::kNearest || rounding == Rounding::kNearestAway ||
                               (rounding == Rounding::kDown && minus) || (rounding == Rounding::kUp && !minus);
      if (!to_infinity) result = infinity - 1;
    }
  }
  return sign | result;
}

double Widen(FloatFormat format, uint32_t bits) {
  const int m = format.mantissa_bits;
  const uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const auto exponent = static_cast<int>(bits >> m & exponent_mask);
  const uint32_t mantissa = bits & ((1u << m) - 1);
  const bool minus = (bits >> (m + format.exponent_bits) & 1) != 0;
  const int bias = static_cast<int>(exponent_mask >> 1);
  double value;
  if (exponent != 0 && exponent != static_cast<int>(exponent_mask)) {
    const auto biased = static_cast<uint64_t>(exponent - bias + 1023);
    return std::bit_cast<double>(static_cast<uint64_t>(minus) << 63 | biased << 52 |
                                 static_cast<uint64_t>(mantissa) << (52 - m));
  }
  if (exponent != 0) {
    value = mantissa != 0 ? std::nan("") : HUGE_VAL;
  } else {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - m);
  }
  return minus ? -value : value;
}

double FusedToOdd(double a, double b, double c) {
  const double product = a * b;  // exact
  const double sum = product + c;
  if (!std::isfinite(sum) || sum == 0) return sum;
  const double c_part = sum - product;
  const double error = (product - (sum - c_part)) + (c - c_part);
  if (error == 0 || (std::bit_cast<uint64_t>(sum) & 1) != 0) return sum;
  // The last bit is even: the neighbour in the direction of the error is odd.
  const bool away = (error > 0) == (sum > 0);
  return std::bit_cast<double>(std::bit_cast<uint64_t>(sum) + (away ? 1 : -1));
}

}  // namespace ingot::ptx
