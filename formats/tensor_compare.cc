// Compares bit patterns first and decodes only the elements that differ.
#include "formats/tensor_compare.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "formats/element.h"
#include "runtime/small_float.h"

namespace ingot::formats {

namespace {

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace

double ElementAsDouble(const Tensor& tensor, int64_t index) {
  const DataType dtype = tensor.dtype();
  const uint64_t bits = ElementBits(tensor.view(), index);
  if (dtype.is_floating()) return DecodeFloat(dtype, bits);
  if (dtype.is_int()) return static_cast<double>(SignExtend(bits, dtype.bits));
  return static_cast<double>(bits);
}

std::string Comparison::ToString() const {
  if (equal)
    return "equal: largest error " + Number(max_absolute_error) + " over " + std::to_string(num_elements) + " elements";
  std::string position;
  for (int64_t i : worst) position += (position.empty() ? "" : ", ") + std::to_string(i);
  return std::to_string(num_different) + " of " + std::to_string(num_elements) + " elements differ; worst at [" +
         position + "]: got " + Number(worst_actual) + ", expected " + Number(worst_expected);
}

Result<Comparison> CompareTensors(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  const bool same_dims =
      std::equal(actual.dims().begin(), actual.dims().end(), expected.dims().begin(), expected.dims().end());
  if (actual.dtype() != expected.dtype() || !same_dims) {
    return Status(StatusCode::kBadInput, "expected " + expected.TypeToString() + ", got " + actual.TypeToString());
  }
  if (actual.dtype().total_bits() > 64) {
    return Status(StatusCode::kBadInput, "elements of " + actual.dtype().ToString() + " cannot be compared");
  }
  INGOT_ASSIGN_OR_RETURN(const Tensor a, actual.Compact());
  INGOT_ASSIGN_OR_RETURN(const Tensor b, expected.Compact());
  Comparison result;
  result.num_elements = a.num_elements();
  const bool is_exact = !a.dtype().is_floating();
  double worst_excess = -1;
  int64_t worst_index = 0;
  for (int64_t i = 0; i < result.num_elements; ++i) {
    if (ElementBits(a.view(), i) == ElementBits(b.view(), i)) continue;
    const double x = ElementAsDouble(a, i), y = ElementAsDouble(b, i);
    if (x == y && !is_exact) continue;
    if (std::isnan(x) && std::isnan(y)) continue;
    double error = std::fabs(x - y);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error > result.max_absolute_error) result.max_absolute_error = error;
    const double relative = y != 0 && std::isfinite(y) ? error / std::fabs(y) : std::numeric_limits<double>::infinity();
    if (relative > result.max_relative_error) result.max_relative_error = relative;
    const double allowed = is_exact || !std::isfinite(y) ? 0 : tolerance.absolute + tolerance.relative * std::fabs(y);
    if (!is_exact && error <= allowed) continue;
    ++result.num_different;
    if (error - allowed > worst_excess) {
      worst_excess = error - allowed;
      worst_index = i;
      result.worst_actual = x;
      result.worst_expected = y;
    }
  }
  result.equal = result.num_different == 0;
  if (!result.equal) {
    result.worst.resize(static_cast<size_t>(a.rank()));
    for (int axis = a.rank() - 1; axis >= 0; --axis) {
      result.worst[static_cast<size_t>(axis)] = worst_index % a.dim(axis);
      worst_index /= a.dim(axis);
    }
  }
  return result;
}

}  // namespace ingot::formats
