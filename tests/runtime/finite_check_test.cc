#include "runtime/finite_check.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/small_float.h"

namespace ingot {
namespace {

// A 2 x 3 tensor of ones with one element set.
FiniteReport CheckWith(DataType dtype, size_t element, double value, std::string* text = nullptr) {
  const int width = dtype.bits / 8;
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < 6; ++i) {
    const uint64_t bits = EncodeFloat(dtype, i == element ? value : 1.0);
    for (int b = 0; b < width; ++b) bytes.push_back(static_cast<uint8_t>(bits >> (8 * b)));
  }
  const Tensor tensor = *Tensor::FromBytes(dtype, std::vector<int64_t>{2, 3}, bytes);
  const FiniteReport report = CheckFinite(tensor.view());
  if (text != nullptr && report.element >= 0) *text = DescribeElement(tensor.view(), report);
  return report;
}

TEST_CASE("NaN and infinity are found in every floating dtype that has them") {
  for (const DataType dtype : {DataType::Float(64), DataType::Float(32), DataType::Float(16), DataType::Bfloat16(),
                               DataType(TypeCode::kFloat8E5M2, 8), DataType(TypeCode::kFloat8E4M3FN, 8)}) {
    CAPTURE(dtype.ToString());
    CHECK(CheckWith(dtype, 0, 0.5).worst == Finiteness::kFinite);
    std::string text;
    const FiniteReport nan = CheckWith(dtype, 4, NAN, &text);
    CHECK(nan.worst == Finiteness::kHasNaN);
    CHECK(nan.element == 4);
    CHECK(text == "element [1, 1] is NaN");
    if (dtype.code == TypeCode::kFloat8E4M3FN) continue;  // has no infinity
    const FiniteReport infinity = CheckWith(dtype, 5, -std::numeric_limits<double>::infinity(), &text);
    CHECK(infinity.worst == Finiteness::kHasInfinity);
    CHECK(text == "element [1, 2] is infinite");
  }
}

TEST_CASE("a NaN counts for more than an infinity before it; integers are finite") {
  const std::vector<float> mixed = {INFINITY, 1, NAN};
  const auto* bytes = reinterpret_cast<const uint8_t*>(mixed.data());
  const Tensor floats = *Tensor::FromBytes(DataType::Float(32), std::vector<int64_t>{3}, {bytes, 12});
  CHECK(CheckFinite(floats.view()).worst == Finiteness::kHasNaN);
  CHECK(CheckFinite(floats.view()).element == 2);
  const Tensor integers = *Tensor::FromBytes(DataType::Int(32), std::vector<int64_t>{3}, {bytes, 12});
  CHECK(CheckFinite(integers.view()).worst == Finiteness::kFinite);
}

}  // namespace
}  // namespace ingot
