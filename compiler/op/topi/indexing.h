// Tensor expressions that read at data-dependent places. An index below 0 counts from the end, and one that is still
// outside of the axis reads the nearest element: no kernel reads outside of its buffers, whatever the data are.
#pragma once

#include "compiler/op/topi/elementwise.h"

namespace ingot::op::topi {

// How Take reads an index outside of its axis.
enum class OutOfRange : uint8_t {
  kNearest,  // the nearest element
  kFromEnd,  // below 0 it counts from the end; then the nearest element
  kModulo,   // modulo the extent
};

// An index that data hold, of any integer dtype, as an int64 place in [0, max(extent, 1)).
PrimExpr PlaceOf(const PrimExpr& index, const PrimExpr& extent, bool from_end = true);
// index limited to the extent unless it is proved to lie inside, given that it is less than `below`.
PrimExpr Limit(const PrimExpr& index, const PrimExpr& below, const PrimExpr& extent);
// The element, which is read from x, or 0 where x may have no elements along the given axes.
PrimExpr UnlessEmpty(const te::Tensor& x, const std::vector<int>& axes, PrimExpr element);
// x(index), likewise.
PrimExpr ReadUnlessEmpty(const te::Tensor& x, te::Indices index, const std::vector<int>& axes);

// out = x with the axis replaced by the axes of indices.
te::Tensor Take(const te::Tensor& x, const te::Tensor& indices, int axis, OutOfRange mode);
// out[i] = x[i, but indices[i] along axis]
te::Tensor GatherElements(const te::Tensor& x, const te::Tensor& indices, int axis);
// out[batch, i.., rest..] = x[batch, indices[batch, i..], rest..]: the last axis of indices, of constant extent, holds
// places along the axes after the batch_dims first ones.
te::Tensor GatherNd(const te::Tensor& x, const te::Tensor& indices, int batch_dims, Shape shape);

}  // namespace ingot::op::topi
