// Every definition is one stage that reads its operands at the indices that broadcasting gives (op/broadcast.h).
#include "compiler/op/topi/elementwise.h"

#include <algorithm>

#include "compiler/op/broadcast.h"
#include "compiler/op/infer.h"
#include "runtime/check.h"

namespace ingot::op::topi {

DataType WideType(DataType dtype) {
  const bool is_narrow = dtype.is_floating() && dtype.bits <= 16;
  return is_narrow ? DataType::Float(32, dtype.lanes) : dtype;
}

PrimExpr Wide(PrimExpr x) { return ir::Cast(WideType(x->dtype), x); }

te::Tensor CastTo(const te::Tensor& x, DataType dtype) {
  if (x.dtype() == dtype) return x;
  return Map(
      x, [&](PrimExpr e) { return ir::Cast(dtype, std::move(e)); }, "T_cast");
}

te::Tensor Map(const te::Tensor& x, const std::function<PrimExpr(PrimExpr)>& fn, std::string name) {
  return te::Compute(
      x.shape(), [&](const te::Indices& i) { return fn(x(i)); }, std::move(name));
}

PrimExpr BroadcastElement(const te::Tensor& x, const te::Indices& index, const Shape& shape) {
  const size_t rank = x.shape().size();
  INGOT_CHECK(rank <= index.size());
  te::Indices indices(index.end() - static_cast<std::ptrdiff_t>(rank), index.end());
  for (size_t i = 0; i < rank; ++i) {
    indices[i] = BroadcastIndex(x.shape()[i], shape[index.size() - rank + i], indices[i]);
  }
  return x(indices);
}

Shape BroadcastShape(const Shape& a, const Shape& b) {
  Shape shape = a.size() < b.size() ? b : a;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    shape[shape.size() - i] = BroadcastDim(a[a.size() - i], b[b.size() - i]);
  }
  return shape;
}

te::Tensor BroadcastMap(const std::vector<te::Tensor>& inputs, Shape shape,
                        const std::function<PrimExpr(const std::vector<PrimExpr>&)>& fn, std::string name) {
  return te::Compute(
      shape,
      [&](const te::Indices& index) {
        std::vector<PrimExpr> elements;
        for (const te::Tensor& input : inputs) elements.push_back(BroadcastElement(input, index, shape));
        return fn(elements);
      },
      std::move(name));
}

te::Tensor BroadcastTo(const te::Tensor& x, Shape shape) {
  return BroadcastMap(
      {x}, std::move(shape), [](const std::vector<PrimExpr>& e) { return e[0]; }, "T_broadcast_to");
}

te::Tensor Full(Shape shape, PrimExpr value) {
  return te::Compute(
      std::move(shape), [&](const te::Indices&) { return value; }, "T_full");
}

}  // namespace ingot::op::topi
