// Tensor expressions of matrix products, convolution and pooling. Padding is a stage of its own, which schedules
// inline. Results of a wider dtype than the operands add up in the wider one.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

// NumPy's matmul into dtype.
te::Tensor Matmul(const te::Tensor& a, const te::Tensor& b, DataType dtype);
// a[.., k] times a matrix of `units` columns in panels[ceil(units / c), k, c].
te::Tensor MatmulPacked(const te::Tensor& a, const te::Tensor& panels, int64_t units, DataType dtype);

// Two spatial axes; padding is [top, left, bottom, right].
struct Window2d {
  std::vector<int64_t> strides, padding, dilation;
};
// data NCHW, weight OIHW, result NCHW.
te::Tensor Conv2d(const te::Tensor& data, const te::Tensor& weight, const Window2d& window, int64_t groups,
                  DataType dtype);
// data and result NCHW; the result's shape counts the windows, some of which may hang over the padding (ceil mode).
te::Tensor MaxPool2d(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window2d& window,
                     Shape shape);
te::Tensor AvgPool2d(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window2d& window, Shape shape,
                     bool count_include_pad);

}  // namespace ingot::op::topi
