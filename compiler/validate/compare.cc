// Elements are compared one by one, as bits and then as numbers; the tolerance for rounding is one number per tensor.
#include "compiler/validate/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "compiler/ir/float_format.h"

namespace ingot::validate {

namespace {

// The tolerance for rounding errors of a whole model (sums of some thousand terms, a few layers), in units of the
// dtype's epsilon times the tensor's largest number.
constexpr double kAllowedEpsilons = 1024;

uint64_t BitsAt(const HostTensor& tensor, size_t i) {
  const auto width = static_cast<size_t>(tensor.dtype.bits / 8);
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes().data() + i * width, width);
  return bits;
}

std::string NumberText(const HostTensor& tensor, size_t i) {
  const uint64_t bits = BitsAt(tensor, i);
  char text[48];
  if (tensor.dtype.is_floating()) {
    std::snprintf(text, sizeof text, "%.9g", ir::DecodeFloat(tensor.dtype, bits));
  } else {
    std::snprintf(text, sizeof text, "%lld",
                  static_cast<long long>(ir::WrapInt(tensor.dtype, static_cast<int64_t>(bits))));
  }
  return text;
}

// What the largest finite number of a tensor says of all of them.
struct Scale {
  double allowed = 0;         // differences by rounding
  bool may_overflow = false;  // sums of such numbers may have been infinite on their way
};

Scale ScaleOf(const HostTensor& before) {
  const ir::FloatFormat& format = ir::FloatFormatOf(before.dtype);
  double largest = 0;
  for (size_t i = 0; i * (before.dtype.bits / 8U) < before.size_bytes; ++i) {
    const double value = std::fabs(ir::DecodeFloat(before.dtype, BitsAt(before, i)));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  // Small formats have so few numbers that a thousand epsilons would allow any result.
  const double epsilons = std::ldexp(format.mantissa_bits >= 20 ? kAllowedEpsilons : 32, -format.mantissa_bits);
  const double end = ir::DecodeFloat(before.dtype, ir::LargestFiniteBits(format));
  return {largest * epsilons, largest >= std::ldexp(end, -10)};
}

bool Agree(const HostTensor& before, const HostTensor& after, size_t i, Exactness exactness, const Scale& scale) {
  const uint64_t a = BitsAt(before, i), b = BitsAt(after, i);
  if (a == b) return true;
  if (!before.dtype.is_floating()) {
    // A number near a half may be rounded to the next integer.
    const int64_t x = ir::WrapInt(before.dtype, static_cast<int64_t>(a));
    const int64_t y = ir::WrapInt(before.dtype, static_cast<int64_t>(b));
    return exactness != Exactness::kBitwise && !before.dtype.is_bool() && (x - y == 1 || y - x == 1);
  }
  const double x = ir::DecodeFloat(before.dtype, a), y = ir::DecodeFloat(before.dtype, b);
  if (std::isnan(x) && std::isnan(y)) return true;
  if (exactness == Exactness::kBitwise) return false;
  if (exactness == Exactness::kFinite && !std::isfinite(y)) return true;
  if (exactness == Exactness::kSums && scale.may_overflow && (!std::isfinite(x) || !std::isfinite(y))) return true;
  if (!std::isfinite(x) || !std::isfinite(y)) return false;
  return std::fabs(x - y) <= scale.allowed;
}

}  // namespace

std::string Difference(std::span<const HostTensor> before, std::span<const HostTensor> after, Exactness exactness) {
  if (before.size() != after.size()) {
    return std::to_string(after.size()) + " results, were " + std::to_string(before.size());
  }
  for (size_t r = 0; r < before.size(); ++r) {
    const std::string where = "result " + std::to_string(r);
    if (before[r].dtype != after[r].dtype || before[r].dims != after[r].dims) {
      return where + ": " + after[r].TypeToString() + ", was " + before[r].TypeToString();
    }
    if (before[r].dtype.bits < 8) {
      if (std::ranges::equal(before[r].bytes(), after[r].bytes())) continue;
      return where + ": other packed elements";
    }
    const bool needs_scale = exactness != Exactness::kBitwise && before[r].dtype.is_floating();
    const Scale scale = needs_scale ? ScaleOf(before[r]) : Scale{};
    const size_t count = before[r].size_bytes / (before[r].dtype.bits / 8U);
    for (size_t i = 0; i < count; ++i) {
      if (Agree(before[r], after[r], i, exactness, scale)) continue;
      return where + ", element " + std::to_string(i) + " of " + before[r].TypeToString() + ": " +
             NumberText(after[r], i) + ", was " + NumberText(before[r], i);
    }
  }
  return "";
}

}  // namespace ingot::validate
