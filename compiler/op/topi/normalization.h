// Tensor expressions of normalisations: subtract a mean, divide by a deviation, scale and shift. Stages: sums, means,
// squared distances, variances (in float32 for sixteen-bit floats), then the result.
#pragma once

#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

// (x - mean) / sqrt(variance + epsilon) * gamma + beta over axes, where gamma and beta (null: left out) have the dims
// of param_axes in order.
te::Tensor Normalize(const te::Tensor& x, const te::Tensor* gamma, const te::Tensor* beta, const std::vector<int>& axes,
                     const std::vector<int>& param_axes, double epsilon);
// The same over axes and the channels of each of num_groups groups together; gamma and beta have the channels' dim.
te::Tensor GroupNorm(const te::Tensor& x, const te::Tensor* gamma, const te::Tensor* beta, int64_t num_groups,
                     int channel_axis, const std::vector<int>& axes, double epsilon);
// x / sqrt(mean(x^2) + epsilon) * weight
te::Tensor RmsNorm(const te::Tensor& x, const te::Tensor& weight, const std::vector<int>& axes, double epsilon);
// x / (bias + alpha / size * sum of x^2 over size neighbours along axis)^beta
te::Tensor LocalResponseNorm(const te::Tensor& x, int64_t size, int axis, double alpha, double beta, double bias);
// 1 at the first place of the greatest element along axis, else 0.
te::Tensor Hardmax(const te::Tensor& x, int axis);

}  // namespace ingot::op::topi
