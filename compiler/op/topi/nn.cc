#include "compiler/op/topi/nn.h"

#include <algorithm>

#include "compiler/op/infer.h"
#include "compiler/op/topi/reduction.h"
#include "compiler/op/topi/transform.h"

namespace ingot::op::topi {
namespace {

// The data with every window inside, padded by value where needed. In ceil mode the last window may end behind the
// padding by up to a stride.
te::Tensor PadWindows(const te::Tensor& data, const Window2d& window, bool ceil_mode, const PrimExpr& value) {
  std::vector<int64_t> before = {0, 0, window.padding[0], window.padding[1]};
  std::vector<int64_t> after = {0, 0, window.padding[2], window.padding[3]};
  for (size_t i = 0; i < 2; ++i) after[2 + i] += ceil_mode ? window.strides[i] - 1 : 0;
  const auto is_zero = [](int64_t width) { return width == 0; };
  if (std::ranges::all_of(before, is_zero) && std::ranges::all_of(after, is_zero)) return data;
  return Pad(data, before, after, value, "pad_temp");
}

PrimExpr WindowPosition(const PrimExpr& out, const PrimExpr& tap, const Window2d& window, size_t axis) {
  return out * window.strides[axis] + tap * window.dilation[axis];
}

// How many taps of the window at out lie in [low, high) of the unpadded axis.
PrimExpr CountTaps(const PrimExpr& out, int64_t taps, const Window2d& window, size_t axis, const PrimExpr& high,
                   bool from_padding) {
  const PrimExpr start = out * window.strides[axis] - window.padding[axis];
  const PrimExpr dilation = ir::Int64(window.dilation[axis]);
  const PrimExpr last = ir::Min(ir::FloorDiv(high - 1 - start, dilation), ir::Int64(taps - 1));
  if (from_padding) return ir::Max(last + 1, ir::Int64(0));
  const PrimExpr first =
      ir::Max(ir::FloorDiv(ir::Int64(0) - start + (window.dilation[axis] - 1), dilation), ir::Int64(0));
  return ir::Max(last - first + 1, ir::Int64(0));
}

bool IsCeil(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window2d& window, const Shape& shape) {
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = window.dilation[i] * (pool_size[i] - 1) + 1;
    const PrimExpr padded = data.shape()[2 + i] + (window.padding[i] + window.padding[2 + i]);
    const PrimExpr floor = ir::FloorDiv(padded - reach, ir::Int64(window.strides[i])) + 1;
    if (!DimsEqual(floor, shape[2 + i])) return true;
  }
  return false;
}

te::Tensor Pool(Reducer reducer, const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window2d& window,
                Shape shape, std::string name) {
  const PrimExpr identity = Identity(reducer, data.dtype());
  const te::Tensor padded = PadWindows(data, window, IsCeil(data, pool_size, window, shape), identity);
  const ir::IterVar rv0 = te::ReduceAxis(ir::Int64(pool_size[0]), "rv0");
  const ir::IterVar rv1 = te::ReduceAxis(ir::Int64(pool_size[1]), "rv1");
  return te::Compute(std::move(shape),
                     [&](const te::Indices& i) {
                       const PrimExpr element = padded(i[0], i[1], WindowPosition(i[2], rv0->var, window, 0),
                                                       WindowPosition(i[3], rv1->var, window, 1));
                       return ReduceOver(reducer, element, {rv0, rv1});
                     },
                     std::move(name), {"ax0", "ax1", "ax2", "ax3"});
}

// Products of narrow floats are summed in float32.
DataType SumType(DataType dtype) { return dtype.is_floating() && dtype.bits < 32 ? DataType::Float(32) : dtype; }
te::Tensor RoundTo(const te::Tensor& sum, DataType dtype) {
  if (sum.dtype() == dtype) return sum;
  return te::Compute(
      sum.shape(), [&](const te::Indices& i) { return ir::Cast(dtype, sum(i)); }, "cast");
}

}  // namespace

te::Tensor Matmul(const te::Tensor& a, const te::Tensor& b, DataType dtype) {
  const Shape& x = a.shape();
  const Shape& y = b.shape();
  const bool a_vector = x.size() == 1;
  const bool b_vector = y.size() == 1;
  const Shape a_batch(x.begin(), x.end() - (a_vector ? 1 : 2));
  const Shape b_batch(y.begin(), y.end() - (b_vector ? 1 : 2));
  const Shape batch = BroadcastShape(a_batch, b_batch);
  Shape shape = batch;
  if (!a_vector) shape.push_back(x[x.size() - 2]);
  if (!b_vector) shape.push_back(y.back());
  const ir::IterVar k = te::ReduceAxis(x.back(), "k");
  const DataType sum_dtype = SumType(dtype);
  const te::Tensor sum = te::Compute(
      shape,
      [&](const te::Indices& out) {
        // The indices of one operand's batch axes: those of the result, 0 where it repeats.
        const auto batch_indices = [&](const Shape& own) {
          te::Indices indices;
          for (size_t i = 0; i < own.size(); ++i) {
            const size_t at = batch.size() - own.size() + i;
            const bool repeats = ir::IsConstInt(own[i], 1) && !ir::IsConstInt(batch[at], 1);
            indices.push_back(repeats ? ir::Int64(0) : out[at]);
          }
          return indices;
        };
        te::Indices left = batch_indices(a_batch);
        te::Indices right = batch_indices(b_batch);
        if (!a_vector) left.push_back(out[batch.size()]);
        left.push_back(k->var);
        right.push_back(k->var);
        if (!b_vector) right.push_back(out.back());
        return ReduceOver(Reducer::kSum, ir::Cast(sum_dtype, a(left)) * ir::Cast(sum_dtype, b(right)), {k});
      },
      "matmul");
  return RoundTo(sum, dtype);
}

te::Tensor MatmulPacked(const te::Tensor& a, const te::Tensor& panels, int64_t units, DataType dtype) {
  Shape shape = a.shape();
  shape.back() = ir::Int64(units);
  const ir::IterVar k = te::ReduceAxis(a.shape().back(), "k");
  const PrimExpr& columns = panels.shape()[2];
  const DataType sum_dtype = SumType(dtype);
  const te::Tensor sum = te::Compute(
      shape,
      [&](const te::Indices& out) {
        te::Indices left = out;
        left.back() = k->var;
        const PrimExpr weight = panels(ir::FloorDiv(out.back(), columns), k->var, ir::FloorMod(out.back(), columns));
        return ReduceOver(Reducer::kSum, ir::Cast(sum_dtype, a(left)) * ir::Cast(sum_dtype, weight), {k});
      },
      "matmul");
  return RoundTo(sum, dtype);
}

te::Tensor Conv2d(const te::Tensor& data, const te::Tensor& weight, const Window2d& window, int64_t groups,
                  DataType dtype) {
  const te::Tensor padded = PadWindows(data, window, false, ir::MakeConst(data.dtype(), 0));
  Shape shape = {data.shape()[0], weight.shape()[0]};
  for (size_t i = 0; i < 2; ++i) {
    const PrimExpr reach = (weight.shape()[2 + i] - 1) * window.dilation[i] + 1;
    const PrimExpr room = data.shape()[2 + i] + (window.padding[i] + window.padding[2 + i]) - reach;
    shape.push_back(SimplifyDim(ir::FloorDiv(room, ir::Int64(window.strides[i])) + 1));
  }
  const ir::IterVar rc = te::ReduceAxis(weight.shape()[1], "rc");
  const ir::IterVar ry = te::ReduceAxis(weight.shape()[2], "ry");
  const ir::IterVar rx = te::ReduceAxis(weight.shape()[3], "rx");
  return te::Compute(shape,
                     [&](const te::Indices& i) {
                       PrimExpr channel = rc->var;
                       if (groups > 1) {
                         const PrimExpr outputs_per_group =
                             SimplifyDim(ir::FloorDiv(weight.shape()[0], ir::Int64(groups)));
                         channel = ir::FloorDiv(i[1], outputs_per_group) * weight.shape()[1] + channel;
                       }
                       const PrimExpr element = padded(i[0], channel, WindowPosition(i[2], ry->var, window, 0),
                                                       WindowPosition(i[3], rx->var, window, 1));
                       const PrimExpr tap = weight(i[1], rc->var, ry->var, rx->var);
                       return ReduceOver(Reducer::kSum, ir::Cast(dtype, element) * ir::Cast(dtype, tap), {rc, ry, rx});
                     },
                     groups > 1 ? "group_conv2d_nchw" : "conv2d_nchw", {"nn", "ff", "yy", "xx"});
}

te::Tensor MaxPool2d(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window2d& window,
                     Shape shape) {
  return Pool(Reducer::kMax, data, pool_size, window, std::move(shape), "pool_max");
}

te::Tensor AvgPool2d(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window2d& window, Shape shape,
                     bool count_include_pad) {
  const te::Tensor sum = Pool(Reducer::kSum, data, pool_size, window, std::move(shape), "pool_sum");
  return te::Compute(sum.shape(),
                     [&](const te::Indices& i) {
                       PrimExpr count = ir::Int64(1);
                       for (size_t axis = 0; axis < 2; ++axis) {
                         const int64_t behind = count_include_pad ? window.padding[2 + axis] : 0;
                         count = count * CountTaps(i[2 + axis], pool_size[axis], window, axis,
                                                   data.shape()[2 + axis] + behind, count_include_pad);
                       }
                       return sum(i) / ir::Cast(data.dtype(), ir::Max(count, ir::Int64(1)));
                     },
                     "pool_avg", {"ax0", "ax1", "ax2", "ax3"});
}

}  // namespace ingot::op::topi
