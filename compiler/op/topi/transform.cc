// Each definition is one stage that reads its input at computed indices; choices are IfThenElse, so no place outside is
// read.
#include "compiler/op/topi/transform.h"

#include <algorithm>

#include "compiler/op/infer.h"
#include "compiler/op/topi/indexing.h"

namespace ingot::op::topi {

te::Tensor Reshape(const te::Tensor& x, Shape shape) {
  return te::Compute(
      shape,
      [&](const te::Indices& out) {
        PrimExpr flat = ir::Int64(0);
        for (size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + out[i];
        te::Indices index(x.shape().size());
        PrimExpr inner = ir::Int64(1);
        for (size_t i = index.size(); i-- > 0;) {
          const PrimExpr position = ir::FloorDiv(flat, inner);
          index[i] = SimplifyDim(i == 0 ? position : ir::FloorMod(position, x.shape()[i]));
          inner = inner * x.shape()[i];
        }
        return x(index);
      },
      "T_reshape");
}

te::Tensor Transpose(const te::Tensor& x, const std::vector<int>& axes) {
  Shape shape;
  for (int axis : axes) shape.push_back(x.shape()[static_cast<size_t>(axis)]);
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        te::Indices index(out.size());
        for (size_t i = 0; i < axes.size(); ++i) index[static_cast<size_t>(axes[i])] = out[i];
        return x(index);
      },
      "T_transpose");
}

te::Tensor Concatenate(const std::vector<te::Tensor>& inputs, int axis) {
  const auto at = static_cast<size_t>(axis);
  Shape shape = inputs[0].shape();
  for (size_t i = 1; i < inputs.size(); ++i) shape[at] = SimplifyDim(shape[at] + inputs[i].shape()[at]);
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        // Built from the last input to the first: if out lies before the next input's start, this input, else what
        // follows.
        Shape starts = {ir::Int64(0)};
        for (const te::Tensor& input : inputs) starts.push_back(SimplifyDim(starts.back() + input.shape()[at]));
        PrimExpr element;
        for (size_t i = inputs.size(); i-- > 0;) {
          te::Indices index = out;
          index[at] = out[at] - starts[i];
          const PrimExpr here = inputs[i](index);
          element = element == nullptr ? here : ir::IfThenElse(out[at] < starts[i + 1], here, element);
        }
        return element;
      },
      "T_concat");
}

te::Tensor StridedSlice(const te::Tensor& x, const Shape& begin, const std::vector<int64_t>& strides, Shape shape) {
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        te::Indices index;
        for (size_t i = 0; i < out.size(); ++i) index.push_back(out[i] * strides[i] + begin[i]);
        return x(index);
      },
      "T_strided_slice");
}

te::Tensor Pad(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
               const PrimExpr& value, std::string name) {
  Shape shape;
  for (size_t i = 0; i < before.size(); ++i) shape.push_back(SimplifyDim(x.shape()[i] + (before[i] + after[i])));
  return Pad(x, before, std::move(shape), value, std::move(name));
}

te::Tensor Pad(const te::Tensor& x, const std::vector<int64_t>& before, Shape shape, const PrimExpr& value,
               std::string name) {
  std::vector<PrimExpr> ends;  // of the data in the result; null where the result ends there or before
  for (size_t i = 0; i < before.size(); ++i) {
    const PrimExpr end = SimplifyDim(x.shape()[i] + before[i]);
    const auto after = ir::AsConstInt(SimplifyDim(shape[i] - end));
    ends.push_back(after && *after <= 0 ? nullptr : end);
  }
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        te::Indices index;
        PrimExpr inside;
        const auto require = [&](PrimExpr condition) {
          inside = inside == nullptr ? std::move(condition) : ir::And(inside, std::move(condition));
        };
        for (size_t i = 0; i < out.size(); ++i) {
          index.push_back(out[i] - before[i]);
          if (before[i] > 0) require(ir::Int64(before[i]) <= out[i]);
          if (ends[i] != nullptr) require(out[i] < ends[i]);
        }
        return inside == nullptr ? x(index) : ir::IfThenElse(inside, x(index), value);
      },
      std::move(name));
}

namespace {

PrimExpr RepeatedPlace(const PrimExpr& place, const PrimExpr& extent, PadMode mode) {
  if (mode == PadMode::kReplicate) return ir::Max(ir::Min(place, extent - 1), ir::Int64(0));
  if (mode == PadMode::kCircular) return ir::FloorMod(place, ir::Max(extent, ir::Int64(1)));
  const PrimExpr inside = ir::FloorMod(place, ir::Max((extent - 1) * 2, ir::Int64(1)));
  return ir::Min(inside, (extent - 1) * 2 - inside);
}

}  // namespace

// Each padded axis has a table of the places that it is read at. Along the last one they are also told by a condition
// where they are the result's own, so that a row is copied but for its ends.
te::Tensor PadByRepeating(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                          PadMode mode) {
  Shape shape;
  std::vector<int> padded;
  for (size_t i = 0; i < before.size(); ++i) {
    shape.push_back(SimplifyDim(x.shape()[i] + (before[i] + after[i])));
    if (before[i] + after[i] > 0) padded.push_back(static_cast<int>(i));
  }
  const auto is_inside = [&](size_t axis, const PrimExpr& out) {
    return ir::And(ir::Int64(before[axis]) <= out, out < x.shape()[axis] + before[axis]);
  };
  std::vector<te::Tensor> tables;
  for (int axis : padded) {
    const auto at = static_cast<size_t>(axis);
    tables.push_back(te::Compute(
        {shape[at]},
        [&](const te::Indices& i) {
          const PrimExpr place = i[0] - before[at];
          return ir::IfThenElse(is_inside(at, i[0]), place, RepeatedPlace(place, x.shape()[at], mode));
        },
        "T_pad_places"));
  }
  return te::Compute(
      shape,
      [&](const te::Indices& out) {
        te::Indices index = out;
        for (size_t i = 0; i < padded.size(); ++i) {
          const auto at = static_cast<size_t>(padded[i]);
          index[at] = tables[i](out[at]);
        }
        if (padded.empty()) return x(index);
        const auto last = static_cast<size_t>(padded.back());
        te::Indices own = index;
        own[last] = out[last] - before[last];
        return UnlessEmpty(x, padded, ir::IfThenElse(is_inside(last, out[last]), x(own), x(index)));
      },
      "T_pad");
}

}  // namespace ingot::op::topi
