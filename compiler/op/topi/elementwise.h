// Tensor expressions of element-wise operators, with and without broadcasting. Stages are named as in TOPI. Dims that
// broadcast were proved to by type inference.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/te/tensor.h"

namespace ingot::op::topi {

using ir::PrimExpr;
using Shape = std::vector<PrimExpr>;

// What elements of a dtype are computed in: float32 for float16 and bfloat16, else the dtype itself.
DataType WideType(DataType dtype);
PrimExpr Wide(PrimExpr x);
// x itself when it has the dtype.
te::Tensor CastTo(const te::Tensor& x, DataType dtype);
// out[i] = fn(x[i])
te::Tensor Map(const te::Tensor& x, const std::function<PrimExpr(PrimExpr)>& fn, std::string name = "compute");
// out[i] = fn of the elements of several tensors that broadcast to shape.
te::Tensor BroadcastMap(const std::vector<te::Tensor>& inputs, Shape shape,
                        const std::function<PrimExpr(const std::vector<PrimExpr>&)>& fn, std::string name);
// The element that broadcasting reads for an index of a result of the given shape.
PrimExpr BroadcastElement(const te::Tensor& x, const te::Indices& index, const Shape& shape);
// NumPy's broadcast of two shapes.
Shape BroadcastShape(const Shape& a, const Shape& b);
te::Tensor BroadcastTo(const te::Tensor& x, Shape shape);
// Every element is value.
te::Tensor Full(Shape shape, PrimExpr value);

}  // namespace ingot::op::topi
