// Comparing tensors as tests and tools do: NumPy's allclose (|actual - expected| <= atol + rtol * |expected|, in
// double; NaN equals NaN, infinities equal themselves), exact for integers and bool. Says how far apart two tensors are
// and where they differ most. Host tensors of any strides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/status.h"
#include "runtime/tensor.h"

namespace ingot::formats {

struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-8;
};

struct Comparison {
  bool equal = true;  // within the tolerance, every element
  int64_t num_elements = 0;
  int64_t num_different = 0;
  double max_absolute_error = 0;  // NaN against a number counts as infinite
  double max_relative_error = 0;
  std::vector<int64_t> worst;  // indices of the element farthest beyond its tolerance
  double worst_actual = 0, worst_expected = 0;
  // "equal: largest error 1e-7", or "3 of 40 elements differ; worst at [1, 2]: got 3, expected 4".
  std::string ToString() const;
};

// Fails where dtypes or dims differ: "expected float32[2, 3], got float32[3, 2]".
Result<Comparison> CompareTensors(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance);

// One element as a double (integers beyond 2^53 round), by position in row-major order; compact host tensors.
double ElementAsDouble(const Tensor& tensor, int64_t index);

}  // namespace ingot::formats
