// Indices are limited to their axes (PlaceOf, Limit), and an axis that may have no elements is tested before it is
// read.
#include "compiler/op/topi/indexing.h"

#include "compiler/arith/analyzer.h"
#include "runtime/check.h"

namespace ingot::op::topi {

PrimExpr PlaceOf(const PrimExpr& index, const PrimExpr& extent, bool from_end) {
  PrimExpr place = ir::Cast(DataType::Int(64), index);
  if (from_end && index->dtype.is_int()) place = ir::Select(place < ir::Int64(0), place + extent, place);
  return ir::Max(ir::Min(place, extent - 1), ir::Int64(0));
}

PrimExpr Limit(const PrimExpr& index, const PrimExpr& below, const PrimExpr& extent) {
  if (below.same_as(extent) || arith::Analyzer().ProveLessEqual(below, extent)) return index;
  return ir::Max(ir::Min(index, extent - 1), ir::Int64(0));
}

PrimExpr UnlessEmpty(const te::Tensor& x, const std::vector<int>& axes, PrimExpr element) {
  PrimExpr filled = ir::BoolImm(true);
  for (int axis : axes) {
    const PrimExpr& extent = x.shape()[static_cast<size_t>(axis)];
    if (!arith::Analyzer().ProveLess(ir::Int64(0), extent)) filled = ir::And(filled, ir::Int64(0) < extent);
  }
  if (ir::IsConstInt(filled, 1)) return element;
  return ir::IfThenElse(filled, std::move(element),
                        x.dtype().is_bool() ? ir::BoolImm(false) : ir::MakeConst(x.dtype(), 0));
}

PrimExpr ReadUnlessEmpty(const te::Tensor& x, te::Indices index, const std::vector<int>& axes) {
  return UnlessEmpty(x, axes, x(std::move(index)));
}

te::Tensor Take(const te::Tensor& x, const te::Tensor& indices, int axis, OutOfRange mode) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  const std::ptrdiff_t inner = indices.rank();
  Shape shape(x.shape().begin(), x.shape().begin() + at);
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  shape.insert(shape.end(), x.shape().begin() + at + 1, x.shape().end());
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        const te::Indices which(out.begin() + at, out.begin() + at + inner);
        te::Indices index(out.begin(), out.begin() + at);
        const PrimExpr& extent = x.shape()[static_cast<size_t>(axis)];
        index.push_back(mode == OutOfRange::kModulo
                            ? ir::FloorMod(ir::Cast(DataType::Int(64), indices(which)), ir::Max(extent, ir::Int64(1)))
                            : PlaceOf(indices(which), extent, mode == OutOfRange::kFromEnd));
        index.insert(index.end(), out.begin() + at + inner, out.end());
        return ReadUnlessEmpty(x, std::move(index), {axis});
      },
      "T_take");
}

te::Tensor GatherElements(const te::Tensor& x, const te::Tensor& indices, int axis) {
  return te::Compute(
      indices.shape(),
      [&](const te::Indices& out) {
        te::Indices index;
        std::vector<int> limited = {axis};
        for (size_t i = 0; i < out.size(); ++i) {
          if (static_cast<int>(i) == axis) {
            index.push_back(PlaceOf(indices(out), x.shape()[i]));
            continue;
          }
          index.push_back(Limit(out[i], indices.shape()[i], x.shape()[i]));
          if (!index.back().same_as(out[i])) limited.push_back(static_cast<int>(i));
        }
        return ReadUnlessEmpty(x, std::move(index), limited);
      },
      "T_gather_elements");
}

te::Tensor GatherNd(const te::Tensor& x, const te::Tensor& indices, int batch_dims, Shape shape) {
  const auto batch = static_cast<size_t>(batch_dims);
  const size_t outer = indices.shape().size() - 1;  // axes of the result that come from indices
  const auto depth = ir::AsConstInt(indices.shape().back());
  INGOT_CHECK(depth, "type inference accepted the extent");
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        te::Indices index;
        std::vector<int> limited;
        for (size_t i = 0; i < batch; ++i) {
          index.push_back(Limit(out[i], indices.shape()[i], x.shape()[i]));
          if (!index.back().same_as(out[i])) limited.push_back(static_cast<int>(i));
        }
        for (int64_t k = 0; k < *depth; ++k) {
          te::Indices which(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(outer));
          which.push_back(ir::Int64(k));
          limited.push_back(static_cast<int>(index.size()));
          index.push_back(PlaceOf(indices(which), x.shape()[index.size()]));
        }
        index.insert(index.end(), out.begin() + static_cast<std::ptrdiff_t>(outer), out.end());
        return ReadUnlessEmpty(x, std::move(index), limited);
      },
      "T_gather_nd");
}

}  // namespace ingot::op::topi
