// Tensor expressions that move elements: reshape, transpose, slice, concatenate, pad.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

// The element at the same row-major position; both shapes have equally many.
te::Tensor Reshape(const te::Tensor& x, Shape shape);
// Axis i of the result is axis axes[i] of x.
te::Tensor Transpose(const te::Tensor& x, const std::vector<int>& axes);
te::Tensor Concatenate(const std::vector<te::Tensor>& inputs, int axis);
// out[i] = x[begin + i * stride], of this shape.
te::Tensor StridedSlice(const te::Tensor& x, const Shape& begin, const std::vector<int64_t>& strides, Shape shape);
// x surrounded by value; the stage reads x only where it lies inside.
te::Tensor Pad(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
               const PrimExpr& value, std::string name = "PadInput");
// The same, of a result whose shape is given; what it has behind the data is padding, too.
te::Tensor Pad(const te::Tensor& x, const std::vector<int64_t>& before, Shape shape, const PrimExpr& value,
               std::string name);
// How a place outside of the axis is read: kReflect mirrors at the ends without repeating them (again and again where
// the image is too short), kReplicate repeats the end, kCircular continues from the other end.
enum class PadMode : uint8_t { kConstant, kReflect, kReplicate, kCircular };
te::Tensor PadByRepeating(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                          PadMode mode);

}  // namespace ingot::op::topi
