#include "runtime/finite_check.h"

#include <cmath>
#include <cstring>

#include "runtime/small_float.h"

namespace ingot {
namespace {

// IEEE formats: without its sign, an infinity is the exponent mask, a NaN is above it.
template <typename Bits>
FiniteReport CheckIeee(const void* data, int64_t count, Bits exponent) {
  constexpr Bits kWithoutSign = static_cast<Bits>(~Bits{0}) >> 1;
  const auto* bytes = static_cast<const std::byte*>(data);
  FiniteReport report;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    bits &= kWithoutSign;
    if (bits < exponent) [[likely]]
      continue;
    if (bits > exponent) return {Finiteness::kHasNaN, i};
    if (report.element < 0) report = {Finiteness::kHasInfinity, i};
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

std::string DescribeElement(const TensorView& view, const FiniteReport& report) {
  int64_t rest = report.element / view.dtype.lanes;
  std::string index;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    const int64_t dim = view.dims[static_cast<size_t>(axis)];
    index = std::to_string(rest % dim) + (index.empty() ? "" : ", ") + index;
    rest /= dim;
  }
  return "element [" + index + "] is " + (report.worst == Finiteness::kHasNaN ? "NaN" : "infinite");
}

}  // namespace ingot
