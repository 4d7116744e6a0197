// Formats of 16 to 64 bits are judged by their bit patterns, in blocks of 256 elements of which the largest magnitude
// decides whether the block is looked at closer; float8 elements are decoded one by one.
#include "runtime/finite_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/small_float.h"

namespace ingot {
namespace {

// IEEE formats: without its sign, an infinity is the exponent mask, a NaN is above it. Blocks are judged by their
// largest element first.
template <typename Bits>
FiniteReport CheckIeee(const void* data, int64_t count, Bits exponent) {
  constexpr int64_t kBlock = 256;
  const auto magnitude = [data](int64_t i) {
    Bits bits;
    std::memcpy(&bits, static_cast<const std::byte*>(data) + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    return static_cast<Bits>(bits & (static_cast<Bits>(~Bits{0}) >> 1));
  };
  FiniteReport report;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    Bits largest = 0;
    for (int64_t i = begin; i < end; ++i) largest = std::max(largest, magnitude(i));
    for (int64_t i = begin; i < end && largest >= exponent; ++i) {
      if (magnitude(i) > exponent) return {Finiteness::kHasNaN, i};
      if (magnitude(i) == exponent && report.element < 0) report = {Finiteness::kHasInfinity, i};
    }
  }
  return report;
}

FiniteReport CheckBytes(DataType dtype, const void* data, int64_t count) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  FiniteReport report;
  for (int64_t i = 0; i < count; ++i) {
    const double value = DecodeFloat(dtype, bytes[i]);
    if (std::isnan(value)) return {Finiteness::kHasNaN, i};
    if (std::isinf(value) && report.element < 0) report = {Finiteness::kHasInfinity, i};
  }
  return report;
}

}  // namespace

FiniteReport CheckFinite(const TensorView& view) {
  const DataType element = view.dtype.element_of();
  const int64_t count = view.num_elements * view.dtype.lanes;
  if (!element.is_floating()) return {};
  if (element == DataType::Float(32)) return CheckIeee<uint32_t>(view.data, count, 0x7f800000);
  if (element == DataType::Float(64)) return CheckIeee<uint64_t>(view.data, count, 0x7ff0000000000000);
  if (element == DataType::Float(16)) return CheckIeee<uint16_t>(view.data, count, 0x7c00);
  if (element == DataType::Bfloat16()) return CheckIeee<uint16_t>(view.data, count, 0x7f80);
  return CheckBytes(element, view.data, count);
}

[[gnu::cold]] std::string DescribeElement(const TensorView& view, const FiniteReport& report) {
  int64_t rest = report.element / view.dtype.lanes;
  std::string index;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    const int64_t dim = view.dims[static_cast<size_t>(axis)];
    index = StrCat({rest % dim, (index.empty() ? "" : ", "), index});
    rest /= dim;
  }
  return StrCat({"element [", index, "] is ", report.worst == Finiteness::kHasNaN ? "NaN" : "infinite"});
}

}  // namespace ingot
