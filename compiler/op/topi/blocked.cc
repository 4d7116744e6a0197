// The definitions over blocked channels: padding as a stage, then one reduction whose innermost axis is the block of
// the result. Where the taps of a window lie far apart, there is no such stage: the sum leaves out what lies in the
// padding. What is not zero around the data has a stage with the rows of each tap apart from each other, instead of all
// rows between the first and the last one.
#include "compiler/op/topi/blocked.h"

#include <algorithm>

#include "compiler/arith/analyzer.h"
#include "compiler/op/infer.h"
#include "compiler/op/topi/byte_products.h"
#include "compiler/op/topi/reduction.h"
#include "compiler/op/topi/transform.h"
#include "compiler/te/annotations.h"

namespace ingot::op::topi {
namespace {

const std::vector<std::string> kAxisNames = {"nn", "oo", "yy", "xx", "vv"};

// The padding behind the data along a spatial axis, so that every window of the result lies inside.
int64_t PaddingBehind(const te::Tensor& data, const std::vector<int64_t>& taps, const BlockedWindow& window,
                      const Shape& out, size_t i) {
  const PrimExpr reach = (out[2 + i] - 1) * window.strides[i] + ((taps[i] - 1) * window.dilation[i] + 1);
  const PrimExpr missing = SimplifyDim(reach - data.shape()[2 + i] - window.padding[i]);
  const auto behind = ir::AsConstInt(missing);
  const int64_t padding = window.padding[2 + i];
  // Only in ceil mode may the last window reach beyond the padding, by less than a stride.
  const bool is_inside = behind || arith::Analyzer().ProveLessEqual(missing, ir::Int64(padding));
  return behind ? std::max<int64_t>(*behind, 0) : is_inside ? padding : padding + window.strides[i] - 1;
}

// The data with padding so that every window of the result lies inside; the data itself where none is needed.
te::Tensor PadWindows(const te::Tensor& data, const std::vector<int64_t>& taps, const BlockedWindow& window,
                      const Shape& out, const PrimExpr& value) {
  std::vector<int64_t> before(data.shape().size(), 0), after = before;
  for (size_t i = 0; i < 2; ++i) {
    before[2 + i] = window.padding[i];
    after[2 + i] = PaddingBehind(data, taps, window, out, i);
  }
  const auto is_zero = [](int64_t width) { return width == 0; };
  if (std::ranges::all_of(before, is_zero) && std::ranges::all_of(after, is_zero)) return data;
  return Pad(data, before, after, value, "pad_temp");
}

PrimExpr Position(const PrimExpr& out, const PrimExpr& tap, const BlockedWindow& window, size_t axis) {
  return out * window.strides[axis] + tap * window.dilation[axis];
}

// The data in float32. It is converted once, with the padding, or as a stage of its own.
te::Tensor Widened(const te::Tensor& data, ir::Attrs attrs) {
  return te::Compute(
      data.shape(), [&](const te::Indices& i) { return Wide(data(i)); }, "wide_data", {}, std::move(attrs));
}

// Whether the taps of a window lie so far apart along an axis, and some of them in the padding, that padding all that
// lies between them takes longer than what it saves.
bool IsFarApart(const std::vector<int64_t>& taps, const BlockedWindow& window) {
  constexpr int64_t kFarApart = 4;
  const auto is_far = [&](size_t i) {
    return taps[i] > 1 && window.dilation[i] >= kFarApart && (window.padding[i] > 0 || window.padding[2 + i] > 0);
  };
  return is_far(0) || is_far(1);
}

// The place in the data that a tap sees.
PrimExpr PlaceOf(const PrimExpr& out, const PrimExpr& tap, const BlockedWindow& window, size_t axis) {
  return Position(out, tap, window, axis) - window.padding[axis];
}
PrimExpr IsInside(const PrimExpr& place, const PrimExpr& extent) {
  return ir::And(place >= ir::Int64(0), place < extent);
}

// The rows that each tap sees: [n, channels, tap, row of the result, padded columns, ...].
te::Tensor PadWindowsByTaps(const te::Tensor& data, const std::vector<int64_t>& taps, const BlockedWindow& window,
                            const Shape& out, const PrimExpr& value) {
  const Shape& in = data.shape();
  Shape shape = {in[0], in[1], ir::Int64(taps[0]), out[2],
                 SimplifyDim(in[3] + (window.padding[1] + PaddingBehind(data, taps, window, out, 1)))};
  shape.insert(shape.end(), in.begin() + 4, in.end());
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        const PrimExpr row = PlaceOf(i[3], i[2], window, 0), column = i[4] - window.padding[1];
        te::Indices from = {i[0], i[1], row, column};
        from.insert(from.end(), i.begin() + 5, i.end());
        return ir::IfThenElse(ir::And(IsInside(row, in[2]), IsInside(column, in[3])), data(from), value);
      },
      "pad_temp");
}

// In float32 of narrower floats, which has all of their numbers.
te::Tensor Pool(Reducer reducer, const te::Tensor& data, const std::vector<int64_t>& pool_size,
                const BlockedWindow& window, Shape shape, std::string name) {
  const te::Tensor padded = PadWindows(data, pool_size, window, shape, Identity(reducer, data.dtype()));
  const ir::IterVar ry = te::ReduceAxis(ir::Int64(pool_size[0]), "ry");
  const ir::IterVar rx = te::ReduceAxis(ir::Int64(pool_size[1]), "rx");
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& i) {
        const PrimExpr element =
            padded(i[0], i[1], Position(i[2], ry->var, window, 0), Position(i[3], rx->var, window, 1), i[4]);
        return ReduceOver(reducer, data.dtype().is_floating() ? Wide(element) : element, {ry, rx});
      },
      std::move(name), kAxisNames);
}

// How many taps of the window at `out` lie in the data, or in the data and its padding where that counts.
PrimExpr CountTaps(const PrimExpr& out, int64_t taps, const BlockedWindow& window, size_t axis, const PrimExpr& extent,
                   bool count_padding) {
  const PrimExpr start = out * window.strides[axis] - window.padding[axis];
  const int64_t dilation = window.dilation[axis];
  const PrimExpr end = count_padding ? extent + window.padding[2 + axis] : extent;
  const PrimExpr last = ir::Min(ir::FloorDiv(end - 1 - start, ir::Int64(dilation)), ir::Int64(taps - 1));
  if (count_padding) return ir::Max(last + 1, ir::Int64(0));
  const PrimExpr first = ir::Max(ir::FloorDiv(ir::Int64(dilation - 1) - start, ir::Int64(dilation)), ir::Int64(0));
  return ir::Max(last - first + 1, ir::Int64(0));
}

}  // namespace

namespace {

// The sums of a convolution, in float32 of narrower floats.
te::Tensor SumsOfConv2d(const te::Tensor& data, const te::Tensor& weight, const BlockedWindow& window, int64_t groups,
                        Shape shape, const PrimExpr& edge) {
  const bool is_dense = weight.rank() == 6;
  const bool is_depthwise = !is_dense && data.rank() == 5;
  const Shape& kernel = weight.shape();
  const std::vector<int64_t> taps = {*ir::AsConstInt(kernel[2]), *ir::AsConstInt(kernel[3])};
  const auto* number = ir::As<ir::FloatImmNode>(edge);
  const bool is_zero = number != nullptr ? number->value == 0 : ir::IsConstInt(edge, 0);
  const bool is_narrow = data.dtype().is_floating() && data.dtype().bits < 32;
  const bool skips_zeros = IsFarApart(taps, window) && is_zero && !is_narrow;
  const bool by_taps = IsFarApart(taps, window) && !skips_zeros;
  const te::Tensor wide = is_narrow ? Widened(data, ir::Attrs{}) : data;
  const PrimExpr around = is_narrow ? ir::MakeConst(wide.dtype(), 0) : edge;
  te::Tensor padded = skips_zeros ? data
                      : by_taps   ? PadWindowsByTaps(wide, taps, window, shape, around)
                                  : PadWindows(wide, taps, window, shape, around);
  if (is_narrow && padded.same_as(wide)) padded = Widened(data, ir::Attrs{{te::kIsKept, true}});
  const ir::IterVar rc = te::ReduceAxis(kernel[1], "rc");
  const ir::IterVar ry = te::ReduceAxis(kernel[2], "ry");
  const ir::IterVar rx = te::ReduceAxis(kernel[3], "rx");
  const ir::IterVar ri = te::ReduceAxis(is_dense ? kernel[4] : ir::Int64(1), "ri");
  const bool are_bytes = data.dtype() == DataType::UInt(8), are_pairs = !are_bytes && weight.dtype() != data.dtype();
  const auto product = [&](const PrimExpr& element, const PrimExpr& tap) {
    if (data.dtype() != DataType::Int(16)) return element * Wide(tap);
    return ir::Cast(DataType::Int(32), element) * ir::Cast(DataType::Int(32), tap);
  };
  const char* name = is_depthwise ? "depthwise_conv2d_nchwc" : "conv2d_nchwc";
  const auto read = [&](const te::Indices& i, const PrimExpr& channel, const PrimExpr& inner) {
    const auto place = [&](const PrimExpr& tap, size_t axis) {
      return skips_zeros ? PlaceOf(i[2 + axis], tap, window, axis) : Position(i[2 + axis], tap, window, axis);
    };
    te::Indices from = {i[0], channel};
    if (by_taps) from.push_back(ry->var);
    from.push_back(by_taps ? i[2] : place(ry->var, 0));
    from.push_back(place(rx->var, 1));
    if (inner != nullptr) from.push_back(inner);
    return padded(from);
  };
  const auto sum = [&](const te::Indices& i, PrimExpr term, std::vector<ir::IterVar> axes) {
    if (skips_zeros) {
      const PrimExpr is_inside = ir::And(IsInside(PlaceOf(i[2], ry->var, window, 0), data.shape()[2]),
                                         IsInside(PlaceOf(i[3], rx->var, window, 1), data.shape()[3]));
      term = ir::IfThenElse(is_inside, term, ir::MakeConst(term->dtype, 0));
    }
    return ReduceOver(Reducer::kSum, term, std::move(axes));
  };
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& i) {
        if (is_depthwise) {
          const PrimExpr tap = weight(i[1], ir::Int64(0), ry->var, rx->var, i[4]);
          return sum(i, product(read(i, i[1], i[4]), tap), {ry, rx});
        }
        if (!is_dense) {
          const PrimExpr tap = weight(i[1], rc->var, ry->var, rx->var, i[4]);
          return sum(i, product(read(i, rc->var, nullptr), tap), {rc, ry, rx});
        }
        PrimExpr block = rc->var;
        if (groups > 1) {
          const PrimExpr blocks_per_group = SimplifyDim(ir::FloorDiv(kernel[0], ir::Int64(groups)));
          block = ir::FloorDiv(i[1], blocks_per_group) * kernel[1] + block;
        }
        const PrimExpr tap = weight(i[1], rc->var, ry->var, rx->var, ri->var, i[4]);
        PrimExpr term;
        if (are_bytes) {
          std::vector<PrimExpr> bytes;
          for (int64_t k = 0; k < kBytesPerWord; ++k) bytes.push_back(read(i, block, ri->var * kBytesPerWord + k));
          term = ir::CallIntrinsic(ir::Intrinsic::kDotBytes, {WordOfBytes(bytes), tap});
        } else if (are_pairs) {
          term = PairProduct(read(i, block, ri->var * 2), read(i, block, ri->var * 2 + 1), tap);
        } else {
          term = product(read(i, block, ri->var), tap);
        }
        return sum(i, term, {rc, ry, rx, ri});
      },
      name, kAxisNames, skips_zeros ? ir::Attrs{{te::kSkipsZeros, true}} : ir::Attrs{});
}

}  // namespace

te::Tensor BlockedConv2d(const te::Tensor& data, const te::Tensor& weight, const BlockedWindow& window, int64_t groups,
                         Shape shape, const PrimExpr& edge) {
  const te::Tensor sums = SumsOfConv2d(data, weight, window, groups, std::move(shape), edge);
  return data.dtype().is_floating() ? CastTo(sums, data.dtype()) : sums;
}

te::Tensor BlockedMaxPool2d(const te::Tensor& data, const std::vector<int64_t>& pool_size, const BlockedWindow& window,
                            Shape shape) {
  return CastTo(Pool(Reducer::kMax, data, pool_size, window, std::move(shape), "pool_max"), data.dtype());
}

te::Tensor BlockedAvgPool2d(const te::Tensor& data, const std::vector<int64_t>& pool_size, const BlockedWindow& window,
                            Shape shape, bool count_include_pad) {
  const te::Tensor sum = Pool(Reducer::kSum, data, pool_size, window, std::move(shape), "pool_sum");
  return te::Compute(
      sum.shape(),
      [&](const te::Indices& i) {
        PrimExpr count = ir::Int64(1);
        for (size_t axis = 0; axis < 2; ++axis) {
          count =
              count * CountTaps(i[2 + axis], pool_size[axis], window, axis, data.shape()[2 + axis], count_include_pad);
        }
        return ir::Cast(data.dtype(), sum(i) / ir::Cast(sum.dtype(), ir::Max(count, ir::Int64(1))));
      },
      "pool_avg", kAxisNames);
}

}  // namespace ingot::op::topi
