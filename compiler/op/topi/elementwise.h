// Tensor expressions of element-wise operators, with and without broadcasting. Stages are named as in TOPI. That dims
// do broadcast was checked before, by type inference and assumed_dims.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/te/tensor.h"

namespace ingot::op::topi {

using ir::PrimExpr;
using Shape = std::vector<PrimExpr>;

// The dtype in which elements of a dtype are computed: float32 for float16 and bfloat16, else the dtype itself.
DataType WideType(DataType dtype);
PrimExpr Wide(PrimExpr x);
// x cast to the dtype; x itself when it has it already.
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
