// The definitions over blocked channels: padding as a stage, then one reduction whose innermost axis is the block of
// the result. Where the taps of a window lie far apart, there is no such stage: the sum leaves out what lies in the
// padding. What is not zero around the data has a stage with the rows of each tap apart from each other, instead of all
// rows between the first and the last one.
#include "compiler/op/topi/blocked.h"

#include <algorithm>
#include <ranges>

#include "compiler/arith/analyzer.h"
#include "compiler/op/infer.h"
#include "compiler/op/topi/byte_products.h"
#include "compiler/op/topi/reduction.h"
#include "compiler/op/topi/transform.h"
#include "compiler/te/annotations.h"

namespace ingot::op::topi {
namespace {

// Where the spatial axes of a tensor stand: of one in blocks, a volume's depth before the channels.
std::vector<size_t> SpatialAxes(size_t count, bool in_blocks = true) {
  if (count == 2) return {2, 3};
  return in_blocks ? std::vector<size_t>{1, 3, 4} : std::vector<size_t>{2, 3, 4};
}
size_t ChannelAxis(size_t count, bool in_blocks = true) { return count == 3 && in_blocks ? 2 : 1; }

std::vector<std::string> AxisNames(size_t spatial) {
  if (spatial == 2) return {"nn", "oo", "yy", "xx", "vv"};
  return {"nn", "dd", "oo", "yy", "xx", "vv"};
}

// Reduction axes over the taps of a window.
std::vector<ir::IterVar> TapAxes(const std::vector<int64_t>& taps) {
  const std::vector<std::string> names = {"rd", "ry", "rx"};
  std::vector<ir::IterVar> axes;
  for (size_t i = 0; i < taps.size(); ++i) {
    axes.push_back(te::ReduceAxis(ir::Int64(taps[i]), names[names.size() - taps.size() + i]));
  }
  return axes;
}

// The padding behind the data along a spatial axis, so that every window of the result lies inside.
int64_t PaddingBehind(const PrimExpr& in, int64_t taps, const BlockedWindow& window, const PrimExpr& out, size_t i) {
  const PrimExpr reach = (out - 1) * window.strides[i] + ((taps - 1) * window.dilation[i] + 1);
  const PrimExpr missing = SimplifyDim(reach - in - window.padding[i]);
  const auto behind = ir::AsConstInt(missing);
  const int64_t padding = window.padding[window.strides.size() + i];
  // Only in ceil mode may the last window reach beyond the padding, by less than a stride.
  const bool is_inside = behind || arith::Analyzer().ProveLessEqual(missing, ir::Int64(padding));
  return behind ? std::max<int64_t>(*behind, 0) : is_inside ? padding : padding + window.strides[i] - 1;
}

// The data with padding so that every window of the result lies inside; the data itself where none is needed. `from` are
// the data's spatial axes.
te::Tensor PadWindows(const te::Tensor& data, const std::vector<size_t>& from, const std::vector<int64_t>& taps,
                      const BlockedWindow& window, const Shape& out, const PrimExpr& value) {
  const std::vector<size_t> to = SpatialAxes(taps.size());
  std::vector<int64_t> before(data.shape().size(), 0), after = before;
  for (size_t i = 0; i < taps.size(); ++i) {
    before[from[i]] = window.padding[i];
    after[from[i]] = PaddingBehind(data.shape()[from[i]], taps[i], window, out[to[i]], i);
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

bool IsPadded(const BlockedWindow& window, size_t i) {
  return window.padding[i] > 0 || window.padding[window.strides.size() + i] > 0;
}

// Whether the taps of a window lie so far apart along an axis, and some of them in the padding, that padding all that
// lies between them takes longer than what it saves.
bool IsFarApart(const std::vector<int64_t>& taps, const BlockedWindow& window) {
  constexpr int64_t kFarApart = 4;
  for (size_t i = 0; i < taps.size(); ++i) {
    if (taps[i] > 1 && window.dilation[i] >= kFarApart && IsPadded(window, i)) return true;
  }
  return false;
}

// The place in the data that a tap sees.
PrimExpr PlaceOf(const PrimExpr& out, const PrimExpr& tap, const BlockedWindow& window, size_t axis) {
  return Position(out, tap, window, axis) - window.padding[axis];
}
PrimExpr IsInside(const PrimExpr& place, const PrimExpr& extent) {
  return ir::And(place >= ir::Int64(0), place < extent);
}

// The rows of an image that each tap sees: [n, channels, tap, row of the result, padded columns, ...].
te::Tensor PadWindowsByTaps(const te::Tensor& data, const std::vector<int64_t>& taps, const BlockedWindow& window,
                            const Shape& out, const PrimExpr& value) {
  const Shape& in = data.shape();
  Shape shape = {in[0], in[1], ir::Int64(taps[0]), out[2],
                 SimplifyDim(in[3] + (window.padding[1] + PaddingBehind(in[3], taps[1], window, out[3], 1)))};
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
  const std::vector<size_t> axes = SpatialAxes(pool_size.size());
  const te::Tensor padded = PadWindows(data, axes, pool_size, window, shape, Identity(reducer, data.dtype()));
  const std::vector<ir::IterVar> taps = TapAxes(pool_size);
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& i) {
        te::Indices from = i;
        for (size_t k = 0; k < axes.size(); ++k) from[axes[k]] = Position(i[axes[k]], taps[k]->var, window, k);
        const PrimExpr element = padded(from);
        return ReduceOver(reducer, data.dtype().is_floating() ? Wide(element) : element, taps);
      },
      std::move(name), AxisNames(pool_size.size()));
}

// How many taps of the window at `out` lie in the data, or in the data and its padding where that counts.
PrimExpr CountTaps(const PrimExpr& out, int64_t taps, const BlockedWindow& window, size_t axis, const PrimExpr& extent,
                   bool count_padding) {
  const PrimExpr start = out * window.strides[axis] - window.padding[axis];
  const int64_t dilation = window.dilation[axis];
  const PrimExpr end = count_padding ? extent + window.padding[window.strides.size() + axis] : extent;
  const PrimExpr last = ir::Min(ir::FloorDiv(end - 1 - start, ir::Int64(dilation)), ir::Int64(taps - 1));
  if (count_padding) return ir::Max(last + 1, ir::Int64(0));
  const PrimExpr first = ir::Max(ir::FloorDiv(ir::Int64(dilation - 1) - start, ir::Int64(dilation)), ir::Int64(0));
  return ir::Max(last - first + 1, ir::Int64(0));
}

}  // namespace

namespace {

// The sums of a convolution, in float32 of narrower floats.
te::Tensor SumsOfConv(const te::Tensor& data, const te::Tensor& weight, const BlockedWindow& window, int64_t groups,
                      Shape shape, const PrimExpr& edge) {
  const size_t spatial = window.strides.size();
  const bool is_dense = static_cast<size_t>(weight.rank()) == spatial + 4;
  const bool in_blocks = static_cast<size_t>(data.rank()) == spatial + 3, is_depthwise = !is_dense && in_blocks;
  const std::vector<size_t> from = SpatialAxes(spatial, in_blocks), to = SpatialAxes(spatial);
  const size_t from_channels = ChannelAxis(spatial, in_blocks), to_channels = ChannelAxis(spatial);
  const Shape& kernel = weight.shape();
  std::vector<int64_t> taps;
  for (size_t k = 0; k < spatial; ++k) taps.push_back(*ir::AsConstInt(kernel[2 + k]));
  const auto* number = ir::As<ir::FloatImmNode>(edge);
  const bool is_zero = number != nullptr ? number->value == 0 : ir::IsConstInt(edge, 0);
  const bool is_narrow = data.dtype().is_floating() && data.dtype().bits < 32;
  const bool is_far = IsFarApart(taps, window), by_taps = is_far && spatial == 2 && (!is_zero || is_narrow);
  // The axes along which the sum leaves out what taps see of the padding: all of them, or the depth, of which a whole
  // plane is left out at once.
  std::vector<bool> skips(spatial, false);
  if (is_zero && !is_narrow) {
    for (size_t k = 0; k < spatial; ++k) {
      skips[k] = is_far || (spatial == 3 && k == 0 && taps[k] > 1 && IsPadded(window, k));
    }
  }
  const bool skips_zeros = std::ranges::find(skips, true) != skips.end();
  const te::Tensor wide = is_narrow ? Widened(data, ir::Attrs{}) : data;
  const PrimExpr around = is_narrow ? ir::MakeConst(wide.dtype(), 0) : edge;
  // Where there is a stage anyway, its planes are padded, too: then they have the same place for each tap.
  const bool has_stage = !is_far && std::ranges::any_of(std::views::iota(size_t{0}, spatial), [&](size_t k) {
    return !skips[k] &&
           (IsPadded(window, k) || PaddingBehind(data.shape()[from[k]], taps[k], window, shape[to[k]], k) > 0);
  });
  te::Tensor padded = skips_zeros && !has_stage ? data
                      : by_taps                 ? PadWindowsByTaps(wide, taps, window, shape, around)
                                                : PadWindows(wide, from, taps, window, shape, around);
  if (is_narrow && padded.same_as(wide)) padded = Widened(data, ir::Attrs{{te::kIsKept, true}});
  const ir::IterVar rc = te::ReduceAxis(kernel[1], "rc");
  const std::vector<ir::IterVar> rt = TapAxes(taps);
  const ir::IterVar ri = te::ReduceAxis(is_dense ? kernel[2 + spatial] : ir::Int64(1), "ri");
  const bool are_bytes = data.dtype() == DataType::UInt(8), are_pairs = !are_bytes && weight.dtype() != data.dtype();
  const auto product = [&](const PrimExpr& element, const PrimExpr& tap) {
    if (data.dtype() != DataType::Int(16)) return element * Wide(tap);
    return ir::Cast(DataType::Int(32), element) * ir::Cast(DataType::Int(32), tap);
  };
  const std::string name =
      std::string(is_depthwise ? "depthwise_" : "") + (spatial == 2 ? "conv2d_nchwc" : "conv3d_ndchwc");
  const auto read = [&](const te::Indices& i, const PrimExpr& channel, const PrimExpr& inner) {
    te::Indices at(spatial + 2);
    at[0] = i[0];
    at[from_channels] = channel;
    for (size_t k = 0; k < spatial; ++k) {
      at[from[k]] = skips_zeros && !has_stage ? PlaceOf(i[to[k]], rt[k]->var, window, k)
                                              : Position(i[to[k]], rt[k]->var, window, k);
    }
    if (by_taps) {  // the result's row
      at[from[0]] = i[to[0]];
      at.insert(at.begin() + 2, rt[0]->var);
    }
    if (inner != nullptr) at.push_back(inner);
    return padded(at);
  };
  const auto sum = [&](const te::Indices& i, PrimExpr term, std::vector<ir::IterVar> axes) {
    PrimExpr is_inside;
    for (size_t k = 0; k < spatial; ++k) {
      if (!skips[k]) continue;
      const PrimExpr along = IsInside(PlaceOf(i[to[k]], rt[k]->var, window, k), data.shape()[from[k]]);
      is_inside = is_inside == nullptr ? along : ir::And(is_inside, along);
    }
    if (is_inside != nullptr) term = ir::IfThenElse(is_inside, term, ir::MakeConst(term->dtype, 0));
    return ReduceOver(Reducer::kSum, term, std::move(axes));
  };
  // The weight of a tap; `input` is the block of input channels, or the input channel.
  const auto tap_of = [&](const te::Indices& i, const PrimExpr& input, const PrimExpr& inner) {
    te::Indices at = {i[to_channels], input};
    for (const ir::IterVar& axis : rt) at.push_back(axis->var);
    if (inner != nullptr) at.push_back(inner);
    at.push_back(i.back());
    return weight(at);
  };
  const auto axes_with = [&](std::vector<ir::IterVar> before, const std::vector<ir::IterVar>& behind) {
    before.insert(before.end(), rt.begin(), rt.end());
    before.insert(before.end(), behind.begin(), behind.end());
    return before;
  };
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& i) {
        if (is_depthwise) {
          return sum(i, product(read(i, i[to_channels], i.back()), tap_of(i, ir::Int64(0), nullptr)), rt);
        }
        if (!is_dense) {
          return sum(i, product(read(i, rc->var, nullptr), tap_of(i, rc->var, nullptr)), axes_with({rc}, {}));
        }
        PrimExpr block = rc->var;
        if (groups > 1) {
          const PrimExpr blocks_per_group = SimplifyDim(ir::FloorDiv(kernel[0], ir::Int64(groups)));
          block = ir::FloorDiv(i[to_channels], blocks_per_group) * kernel[1] + block;
        }
        const PrimExpr tap = tap_of(i, rc->var, ri->var);
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
        return sum(i, term, axes_with({rc}, {ri}));
      },
      name, AxisNames(spatial), skips_zeros ? ir::Attrs{{te::kSkipsZeros, true}} : ir::Attrs{});
}

}  // namespace

te::Tensor BlockedConv(const te::Tensor& data, const te::Tensor& weight, const BlockedWindow& window, int64_t groups,
                       Shape shape, const PrimExpr& edge) {
  const te::Tensor sums = SumsOfConv(data, weight, window, groups, std::move(shape), edge);
  return data.dtype().is_floating() ? CastTo(sums, data.dtype()) : sums;
}

te::Tensor BlockedMaxPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const BlockedWindow& window,
                          Shape shape) {
  return CastTo(Pool(Reducer::kMax, data, pool_size, window, std::move(shape), "pool_max"), data.dtype());
}

te::Tensor BlockedAvgPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const BlockedWindow& window,
                          Shape shape, bool count_include_pad) {
  const te::Tensor sum = Pool(Reducer::kSum, data, pool_size, window, std::move(shape), "pool_sum");
  const std::vector<size_t> axes = SpatialAxes(pool_size.size());
  return te::Compute(
      sum.shape(),
      [&](const te::Indices& i) {
        PrimExpr count = ir::Int64(1);
        for (size_t k = 0; k < axes.size(); ++k) {
          const size_t axis = axes[k];
          count = count * CountTaps(i[axis], pool_size[k], window, k, data.shape()[axis], count_include_pad);
        }
        return ir::Cast(data.dtype(), sum(i) / ir::Cast(sum.dtype(), ir::Max(count, ir::Int64(1))));
      },
      "pool_avg", AxisNames(pool_size.size()));
}

}  // namespace ingot::op::topi
