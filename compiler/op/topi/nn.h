// Tensor expressions of matrix products, convolution and pooling. Padding is a stage of its own, which schedules
// inline. Results of a wider dtype than the operands add up in the wider one; sixteen-bit floats add up in float32 and
// are rounded by a stage of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

// NumPy's matmul into dtype.
te::Tensor Matmul(const te::Tensor& a, const te::Tensor& b, DataType dtype);
// a[.., k] times a matrix of `units` columns in panels[ceil(units / c), k, c].
te::Tensor MatmulPacked(const te::Tensor& a, const te::Tensor& panels, int64_t units, DataType dtype);

// One, two or three spatial axes; padding is the number of elements before each of them, then after each.
struct Window {
  std::vector<int64_t> strides, padding, dilation;
  size_t rank() const { return strides.size(); }
};
// data [n, channels, spatial...], weight [out channels, channels per group, spatial...].
te::Tensor Conv(const te::Tensor& data, const te::Tensor& weight, const Window& window, int64_t groups, DataType dtype);
// The transpose (gradient) of Conv: data [n, channels, spatial...], weight [channels, out channels per group,
// spatial...]. Stages: every element of the data times the whole kernel, then the sums of the products that fall on a
// place. No product is made with zeros between or around the elements, so that a kernel's infinities stay where they
// belong.
te::Tensor ConvTranspose(const te::Tensor& data, const te::Tensor& weight, const Window& window, int64_t groups,
                         const Shape& shape, DataType dtype);
// data [n, channels * taps, blocks] -> shape: sums of what falls on a place. `taps` are constants; the blocks of an axis are
// as many as `counts` says.
te::Tensor Fold(const te::Tensor& data, const Shape& taps, const Shape& counts, const Window& window,
                const Shape& shape);
// Along an axis other than the last one, windows of at most so many taps are compared row by row.
inline constexpr int64_t kMaxPoolTapsAtOnce = 8;
// The result's shape counts the windows, some of which may hang over the padding (ceil mode).
te::Tensor MaxPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window, Shape shape);
// The same in one stage, which compares all taps: for devices whose caches hold what windows share.
te::Tensor MaxPoolAtOnce(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window,
                         Shape shape);
te::Tensor AvgPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window, Shape shape,
                   bool count_include_pad);
// (sum of |x|^p)^(1 / p)
te::Tensor LpPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window, Shape shape,
                  int64_t p);

}  // namespace ingot::op::topi
