#include "formats/tensor_compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace ingot::formats {
namespace {

template <typename T>
Tensor Make(DataType dtype, std::vector<int64_t> dims, std::vector<T> values) {
  return Tensor::FromBytes(dtype, dims, {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)})
      .value();
}
Tensor Floats(std::vector<int64_t> dims, std::vector<float> values) {
  return Make(DataType::Float(32), std::move(dims), std::move(values));
}

TEST_CASE("tolerances are NumPy's: absolute plus relative to the expected value") {
  const Tensor expected = Floats({3}, {0, 1, 100});
  CHECK(CompareTensors(Floats({3}, {0.01f, 1.01f, 101}), expected, {0.0101, 0.011})->equal);
  const auto result = CompareTensors(Floats({3}, {0.01f, 1.01f, 103}), expected, {0.01, 0.011});
  CHECK_FALSE(result->equal);
  CHECK(result->num_different == 1);
  CHECK(result->ToString() == "1 of 3 elements differ; worst at [2]: got 103, expected 100");
}

TEST_CASE("NaN equals NaN alone, and infinities equal themselves alone") {
  const float inf = INFINITY, nan = NAN;
  CHECK(CompareTensors(Floats({3}, {nan, inf, -inf}), Floats({3}, {nan, inf, -inf}), {})->equal);
  CHECK_FALSE(CompareTensors(Floats({1}, {nan}), Floats({1}, {1}), {1, 1})->equal);
  CHECK_FALSE(CompareTensors(Floats({1}, {1}), Floats({1}, {inf}), {1, 1})->equal);
  CHECK_FALSE(CompareTensors(Floats({1}, {-inf}), Floats({1}, {inf}), {1, 1})->equal);
}

TEST_CASE("integers are exact whatever the tolerance") {
  const Tensor a = Make<int64_t>(DataType::Int(64), {2}, {1, INT64_MAX}),
               b = Make<int64_t>(DataType::Int(64), {2}, {1, INT64_MAX - 1});
  CHECK_FALSE(CompareTensors(a, b, {1, 1})->equal);
  CHECK(CompareTensors(a, a, {})->equal);
}

TEST_CASE("types that differ are an error that says both") {
  const auto result = CompareTensors(Floats({2}, {1, 2}), Floats({1, 2}, {1, 2}), {});
  CHECK(result.status().message() == "expected float32[1, 2], got float32[2]");
}

TEST_CASE("the worst element is found in more dimensions and in strided tensors") {
  const Tensor a = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const int axes[] = {1, 0};
  const Tensor transposed = a.Permute(axes).value();
  const auto result = CompareTensors(transposed, Floats({3, 2}, {1, 4, 2, 5, 3, 9}), {});
  CHECK(result->worst == std::vector<int64_t>{2, 1});
  CHECK(result->worst_actual == 6);
}

}  // namespace
}  // namespace ingot::formats
