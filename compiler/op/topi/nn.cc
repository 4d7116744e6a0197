// Products, convolutions and pools as reductions over taps and channels, with padding and rounding as their own stages.
#include "compiler/op/topi/nn.h"

#include <algorithm>
#include <functional>
#include <string>

#include "compiler/arith/analyzer.h"
#include "compiler/op/broadcast.h"
#include "compiler/op/infer.h"
#include "compiler/op/topi/reduction.h"
#include "compiler/op/topi/transform.h"
#include "compiler/te/annotations.h"

namespace ingot::op::topi {
namespace {

// The data with every window inside, padded by value where needed. In ceil mode the last window may reach
// beyond the padding by up to a stride.
te::Tensor PadWindows(const te::Tensor& data, const Window& window, bool ceil_mode, const PrimExpr& value) {
  const size_t rank = window.rank();
  std::vector<int64_t> before = {0, 0};
  std::vector<int64_t> after = {0, 0};
  for (size_t i = 0; i < rank; ++i) {
    before.push_back(window.padding[i]);
    after.push_back(window.padding[rank + i] + (ceil_mode ? window.strides[i] - 1 : 0));
  }
  const auto is_zero = [](int64_t width) { return width == 0; };
  if (std::ranges::all_of(before, is_zero) && std::ranges::all_of(after, is_zero)) return data;
  return Pad(data, before, after, value, "pad_temp");
}

PrimExpr WindowPosition(const PrimExpr& out, const PrimExpr& tap, const Window& window, size_t axis) {
  return out * window.strides[axis] + tap * window.dilation[axis];
}

// How many taps of the window at `out` lie below `high` on the unpadded axis and not before it; from_padding: also
// those before it.
PrimExpr CountTaps(const PrimExpr& out, int64_t taps, const Window& window, size_t axis, const PrimExpr& high,
                   bool from_padding) {
  const PrimExpr start = out * window.strides[axis] - window.padding[axis];
  const PrimExpr dilation = ir::Int64(window.dilation[axis]);
  const PrimExpr last = ir::Min(ir::FloorDiv(high - 1 - start, dilation), ir::Int64(taps - 1));
  if (from_padding) return ir::Max(last + 1, ir::Int64(0));
  const PrimExpr first =
      ir::Max(ir::FloorDiv(ir::Int64(0) - start + (window.dilation[axis] - 1), dilation), ir::Int64(0));
  return ir::Max(last - first + 1, ir::Int64(0));
}

bool IsCeil(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window, const Shape& shape) {
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t reach = window.dilation[i] * (pool_size[i] - 1) + 1;
    const PrimExpr padded = data.shape()[2 + i] + (window.padding[i] + window.padding[window.rank() + i]);
    const PrimExpr floor = ir::FloorDiv(padded - reach, ir::Int64(window.strides[i])) + 1;
    if (!DimsEqual(floor, shape[2 + i])) return true;
  }
  return false;
}

// The reduction of fn(element) over every window; padding holds an element for which fn gives the reducer's identity.
te::Tensor Pool(Reducer reducer, const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window,
                Shape shape, const std::function<PrimExpr(PrimExpr)>& fn, std::string name) {
  const PrimExpr padding = Identity(reducer, data.dtype());
  const te::Tensor padded = PadWindows(data, window, IsCeil(data, pool_size, window, shape), padding);
  std::vector<ir::IterVar> taps;
  std::vector<std::string> axis_names = {"ax0", "ax1"};
  for (size_t i = 0; i < window.rank(); ++i) {
    taps.push_back(te::ReduceAxis(ir::Int64(pool_size[i]), "rv" + std::to_string(i)));
    axis_names.push_back("ax" + std::to_string(2 + i));
  }
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        te::Indices index = out;
        for (size_t i = 0; i < taps.size(); ++i) {
          index[2 + i] = WindowPosition(out[2 + i], taps[i]->var, window, i);
        }
        return ReduceOver(reducer, fn(padded(index)), taps);
      },
      std::move(name), std::move(axis_names));
}

// The greatest elements of the windows along one axis, which are few taps long: rows of the data, compared tap by tap.
// Only taps that some window has in the padding, or beyond it (ceil mode), are conditional.
te::Tensor GreatestAlongAxis(const te::Tensor& data, int64_t num_taps, const Window& window, size_t axis,
                             bool ceil_mode, const PrimExpr& num_windows) {
  const int64_t before = window.padding[axis];
  const int64_t behind = window.padding[window.rank() + axis] + (ceil_mode ? window.strides[axis] - 1 : 0);
  Shape shape = data.shape();
  shape[2 + axis] = num_windows;
  return te::Compute(
      std::move(shape),
      [&](const te::Indices& out) {
        PrimExpr greatest;
        for (int64_t tap = 0; tap < num_taps; ++tap) {
          te::Indices from = out;
          from[2 + axis] = WindowPosition(out[2 + axis], ir::Int64(tap), window, axis) - before;
          PrimExpr element = data(from), inside;
          if (tap * window.dilation[axis] < before) inside = ir::Int64(0) <= from[2 + axis];
          if ((num_taps - 1 - tap) * window.dilation[axis] < behind) {
            const PrimExpr below = from[2 + axis] < data.shape()[2 + axis];
            inside = inside == nullptr ? below : ir::And(inside, below);
          }
          if (inside != nullptr) element = ir::IfThenElse(inside, element, Identity(Reducer::kMax, data.dtype()));
          greatest = greatest == nullptr ? element : ir::Max(greatest, element);
        }
        return greatest;
      },
      "greatest");
}

// The names of loops over spatial axes: x is the innermost.
std::vector<std::string> SpatialNames(size_t rank, const char* format) {
  std::vector<std::string> names;
  for (size_t i = 0; i < rank; ++i) {
    std::string name = format;
    for (char& letter : name) letter = letter == '_' ? "uvwzyx"[6 - rank + i] : letter;
    names.push_back(std::move(name));
  }
  return names;
}

// One reduction axis per dimension of the kernel: input channels of the group, then taps.
std::vector<ir::IterVar> KernelAxes(const te::Tensor& weight, size_t channel_axis) {
  std::vector<ir::IterVar> axes = {te::ReduceAxis(weight.shape()[channel_axis], "rc")};
  const std::vector<std::string> names = SpatialNames(weight.shape().size() - 2, "r_");
  for (size_t i = 0; i < names.size(); ++i) axes.push_back(te::ReduceAxis(weight.shape()[2 + i], names[i]));
  return axes;
}

std::vector<std::string> ConvAxisNames(size_t rank) {
  std::vector<std::string> names = {"nn", "ff"};
  for (std::string& name : SpatialNames(rank, "__")) names.push_back(std::move(name));
  return names;
}

// Where the products of a transposed convolution fall: tap t of element i on the place stride * i + dilation * t of the
// padded result. The reduction runs over the taps that may fall on a place: without dilation over every stride-th.
class TapPlaces {
 public:
  struct Hit {
    PrimExpr is_inside;  // whether the tap and the element exist
    te::Indices taps, elements;
  };

  TapPlaces(const Window& window, Shape taps, Shape elements)
      : window_(window), taps_(std::move(taps)), elements_(std::move(elements)) {
    const std::vector<std::string> names = SpatialNames(window_.rank(), "r_");
    for (size_t i = 0; i < window_.rank(); ++i) {
      const int64_t step = is_dense(i) ? window_.strides[i] : 1;
      axes_.push_back(te::ReduceAxis(SimplifyDim(ir::FloorDiv(taps_[i] + (step - 1), ir::Int64(step))), names[i]));
    }
  }

  size_t rank() const { return window_.rank(); }
  int64_t stride(size_t axis) const { return window_.strides[axis]; }
  int64_t padding(size_t axis) const { return window_.padding[axis]; }
  const std::vector<ir::IterVar>& axes() const { return axes_; }

  // Quotient and rest, by the stride, of a place of the result.
  PrimExpr Quotient(const te::Indices& out, size_t axis) const {
    return ir::FloorDiv(out[2 + axis] + padding(axis), ir::Int64(stride(axis)));
  }
  PrimExpr Rest(const te::Indices& out, size_t axis) const {
    return ir::FloorMod(out[2 + axis] + padding(axis), ir::Int64(stride(axis)));
  }
  Hit At(const te::Indices& out) const {
    te::Indices quotients, rests;
    for (size_t i = 0; i < rank(); ++i) {
      quotients.push_back(Quotient(out, i));
      rests.push_back(Rest(out, i));
    }
    return At(quotients, rests);
  }
  Hit At(const te::Indices& quotients, const te::Indices& rests) const {
    Hit hit{ir::BoolImm(true), {}, {}};
    for (size_t i = 0; i < rank(); ++i) {
      const PrimExpr stride_of_axis = ir::Int64(stride(i));
      PrimExpr tap = axes_[i]->var, element = quotients[i] - axes_[i]->var;
      if (is_dense(i)) {
        tap = rests[i] + tap * stride_of_axis;
        if (stride(i) > 1) hit.is_inside = ir::And(hit.is_inside, tap < taps_[i]);
      } else {
        const PrimExpr first = quotients[i] * stride_of_axis + rests[i] - tap * window_.dilation[i];
        hit.is_inside = ir::And(hit.is_inside, ir::Equal(ir::FloorMod(first, stride_of_axis), ir::Int64(0)));
        element = ir::FloorDiv(first, stride_of_axis);
      }
      hit.is_inside = ir::And(hit.is_inside, element >= ir::Int64(0));
      hit.is_inside = ir::And(hit.is_inside, element < elements_[i]);
      hit.taps.push_back(tap);
      hit.elements.push_back(element);
    }
    return hit;
  }

 private:
  bool is_dense(size_t axis) const { return window_.dilation[axis] == 1; }

  const Window& window_;
  const Shape taps_, elements_;
  std::vector<ir::IterVar> axes_;
};

// The product of an element with a tap, for an image and an output channel.
using ProductAt = std::function<PrimExpr(const PrimExpr& n, const PrimExpr& channel, const TapPlaces::Hit& hit)>;

// Products summed at the places on which they fall, over the taps and the axes given. Places with one rest along the last
// axis lie side by side in the sums, as their products do; then they are spread.
te::Tensor FoldTaps(const ProductAt& product, DataType dtype, std::vector<ir::IterVar> axes, const TapPlaces& places,
                    const Shape& shape) {
  const size_t rank = places.rank(), last = rank - 1;
  const std::string name = "conv" + std::to_string(rank) + "d_transpose";
  axes.insert(axes.end(), places.axes().begin(), places.axes().end());
  // Where at most one tap falls on each place there is nothing to add up.
  const bool is_one =
      std::ranges::all_of(axes, [](const ir::IterVar& axis) { return ir::IsConstInt(axis->domain.extent, 1); });
  const auto sum_at = [&](const te::Indices& out, const Shape& extents, TapPlaces::Hit hit) {
    if (!is_one) {
      const PrimExpr value = product(out[0], out[1], hit);
      return ReduceOver(Reducer::kSum, ir::IfThenElse(hit.is_inside, value, ir::MakeConst(dtype, 0)), axes);
    }
    arith::Analyzer analyzer;
    ir::PrimVarMap first_tap;
    for (size_t i = 0; i < out.size(); ++i) {
      if (ir::As<ir::PrimVarNode>(out[i]) != nullptr) {
        analyzer.Bind(ir::Downcast<ir::PrimVarNode>(out[i]), ir::Range{ir::Int64(0), extents[i]});
      }
    }
    for (const ir::IterVar& axis : axes) first_tap.emplace(axis->var, ir::Int64(0));
    const auto at_first = [&](const PrimExpr& expr) { return analyzer.Simplify(ir::Substitute(expr, first_tap)); };
    hit.is_inside = at_first(hit.is_inside);
    for (PrimExpr& tap : hit.taps) tap = at_first(tap);
    for (PrimExpr& element : hit.elements) element = at_first(element);
    const PrimExpr value = ir::Substitute(product(out[0], out[1], hit), first_tap);
    return ir::IsConstInt(hit.is_inside, 1) ? value : ir::IfThenElse(hit.is_inside, value, ir::MakeConst(dtype, 0));
  };
  const int64_t stride = places.stride(last);
  // With symbolic taps the size of another stage would be too long a formula.
  const auto is_number = [](const ir::IterVar& axis) { return ir::AsConstInt(axis->domain.extent).has_value(); };
  if (stride == 1 || !std::ranges::all_of(places.axes(), is_number)) {
    return te::Compute(
        shape, [&](const te::Indices& out) { return sum_at(out, shape, places.At(out)); }, name, ConvAxisNames(rank));
  }
  Shape sums_shape(shape.begin(), shape.end() - 1);
  sums_shape.push_back(ir::Int64(stride));
  sums_shape.push_back(
      SimplifyDim(ir::FloorDiv(shape.back() + (places.padding(last) + stride - 1), ir::Int64(stride))));
  std::vector<std::string> sums_names = ConvAxisNames(rank);
  sums_names.insert(sums_names.end() - 1, "phase");
  const te::Tensor sums = te::Compute(
      sums_shape,
      [&](const te::Indices& out) {
        te::Indices quotients, rests;
        for (size_t i = 0; i < last; ++i) {
          quotients.push_back(places.Quotient(out, i));
          rests.push_back(places.Rest(out, i));
        }
        quotients.push_back(out[2 + rank]);
        rests.push_back(out[1 + rank]);
        return sum_at(out, sums_shape, places.At(quotients, rests));
      },
      name + "_phases", sums_names);
  return te::Compute(
      shape,
      [&](const te::Indices& out) {
        te::Indices from(out.begin(), out.end() - 1);
        from.push_back(places.Rest(out, last));
        from.push_back(places.Quotient(out, last));
        return sums(from);
      },
      name, ConvAxisNames(rank));
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
  const DataType sum_dtype = WideType(dtype);
  const te::Tensor sum = te::Compute(
      shape,
      [&](const te::Indices& out) {
        // The indices of one operand's batch axes: those of the result, 0 where it repeats.
        const auto batch_indices = [&](const Shape& own) {
          te::Indices indices;
          for (size_t i = 0; i < own.size(); ++i) {
            const size_t at = batch.size() - own.size() + i;
            indices.push_back(BroadcastIndex(own[i], batch[at], out[at]));
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
  return CastTo(sum, dtype);
}

te::Tensor MatmulPacked(const te::Tensor& a, const te::Tensor& panels, int64_t units, DataType dtype) {
  Shape shape = a.shape();
  shape.back() = ir::Int64(units);
  const ir::IterVar k = te::ReduceAxis(a.shape().back(), "k");
  const PrimExpr& columns = panels.shape()[2];
  const DataType sum_dtype = WideType(dtype);
  // Each element of the rows is spread over vectors, once for every few panels: floats of 16 bits are converted before.
  const bool is_narrow = a.dtype().is_floating() && a.dtype().bits < 32;
  const te::Tensor rows = !is_narrow ? a
                                     : te::Compute(
                                           a.shape(), [&](const te::Indices& i) { return Wide(a(i)); }, "wide_data", {},
                                           ir::Attrs{{te::kIsKept, true}});
  const te::Tensor sum = te::Compute(
      shape,
      [&](const te::Indices& out) {
        te::Indices left = out;
        left.back() = k->var;
        const PrimExpr weight = panels(ir::FloorDiv(out.back(), columns), k->var, ir::FloorMod(out.back(), columns));
        return ReduceOver(Reducer::kSum, ir::Cast(sum_dtype, rows(left)) * ir::Cast(sum_dtype, weight), {k});
      },
      "matmul");
  return CastTo(sum, dtype);
}

te::Tensor Conv(const te::Tensor& data, const te::Tensor& weight, const Window& window, int64_t groups,
                DataType dtype) {
  constexpr const char* kLayouts[] = {"ncw", "nchw", "ncdhw"};
  const size_t rank = window.rank();
  const te::Tensor padded = PadWindows(data, window, false, ir::MakeConst(data.dtype(), 0));
  Shape shape = {data.shape()[0], weight.shape()[0]};
  for (size_t i = 0; i < rank; ++i) {
    const PrimExpr reach = (weight.shape()[2 + i] - 1) * window.dilation[i] + 1;
    const PrimExpr room = data.shape()[2 + i] + (window.padding[i] + window.padding[rank + i]) - reach;
    shape.push_back(SimplifyDim(ir::FloorDiv(room, ir::Int64(window.strides[i])) + 1));
  }
  const DataType wide = WideType(dtype);
  const std::vector<ir::IterVar> axes = KernelAxes(weight, 1);
  const std::string name = "conv" + std::to_string(rank) + "d_" + kLayouts[rank - 1];
  const te::Tensor sum = te::Compute(
      shape,
      [&](const te::Indices& out) {
        PrimExpr channel = axes[0]->var;
        if (groups > 1) {
          const PrimExpr outputs_per_group = SimplifyDim(ir::FloorDiv(weight.shape()[0], ir::Int64(groups)));
          channel = ir::FloorDiv(out[1], outputs_per_group) * weight.shape()[1] + channel;
        }
        te::Indices from = {out[0], channel};
        te::Indices tap = {out[1], axes[0]->var};
        for (size_t i = 0; i < rank; ++i) {
          from.push_back(WindowPosition(out[2 + i], axes[1 + i]->var, window, i));
          tap.push_back(axes[1 + i]->var);
        }
        return ReduceOver(Reducer::kSum, ir::Cast(wide, padded(from)) * ir::Cast(wide, weight(tap)), axes);
      },
      groups > 1 ? "group_" + name : name, ConvAxisNames(rank));
  return CastTo(sum, dtype);
}

te::Tensor ConvTranspose(const te::Tensor& data, const te::Tensor& weight, const Window& window, int64_t groups,
                         const Shape& shape, DataType dtype) {
  const size_t rank = window.rank();
  const DataType wide = WideType(dtype);
  const PrimExpr channels_per_group = SimplifyDim(ir::FloorDiv(weight.shape()[0], ir::Int64(groups)));
  const ir::IterVar k = te::ReduceAxis(channels_per_group, "rc");
  // An element of x, which is the data or has all elements of a channel as one axis, times a tap.
  const auto product = [&](const te::Tensor& x, const PrimExpr& n, const PrimExpr& output, const te::Indices& taps_at,
                           const te::Indices& element) {
    const bool is_grouped = groups > 1;
    const PrimExpr group = ir::FloorDiv(output, weight.shape()[1]);
    const PrimExpr channel = is_grouped ? group * channels_per_group + k->var : PrimExpr(k->var);
    te::Indices from = {n, channel};
    te::Indices tap = {channel, is_grouped ? ir::FloorMod(output, weight.shape()[1]) : output};
    from.insert(from.end(), element.begin(), element.end());
    tap.insert(tap.end(), taps_at.begin(), taps_at.end());
    return ir::Cast(wide, x(from)) * ir::Cast(wide, weight(tap));
  };
  const Shape taps(weight.shape().begin() + 2, weight.shape().end());
  const Shape elements(data.shape().begin() + 2, data.shape().end());
  const TapPlaces places(window, taps, elements);
  const auto is_number = [](const PrimExpr& dim) { return ir::AsConstInt(dim).has_value(); };
  // Sums over few channels are not worth a stage of their own, and with symbolic taps its size is too long a formula.
  constexpr int64_t kFewChannels = 2;
  const auto channels = ir::AsConstInt(channels_per_group);
  if (!std::ranges::all_of(taps, is_number) || (channels && *channels <= kFewChannels)) {
    const ProductAt direct = [&](const PrimExpr& n, const PrimExpr& output, const TapPlaces::Hit& hit) {
      return product(data, n, output, hit.taps, hit.elements);
    };
    return CastTo(FoldTaps(direct, wide, {k}, places, shape), dtype);
  }
  // The elements of a channel as one axis: a matrix product of any height and width has rows of them all.
  const auto flat_place = [&](const te::Indices& spatial) {
    PrimExpr place = spatial[0];
    for (size_t i = 1; i < rank; ++i) place = place * elements[i] + spatial[i];
    return place;
  };
  PrimExpr num_elements = elements[0];
  for (size_t i = 1; i < rank; ++i) num_elements = SimplifyDim(num_elements * elements[i]);
  const auto element_at = [&](const te::Indices& i) {
    te::Indices from = {i[0], i[1]};
    PrimExpr place = i[2];
    for (size_t axis = rank; axis-- > 1; place = ir::FloorDiv(place, elements[axis])) {
      from.insert(from.begin() + 2, ir::FloorMod(place, elements[axis]));
    }
    from.insert(from.begin() + 2, place);
    return data(from);
  };
  const te::Tensor flat =
      rank == 1 ? data : te::Compute({data.shape()[0], data.shape()[1], num_elements}, element_at, "elements");
  Shape products_shape = {data.shape()[0]};
  products_shape.insert(products_shape.end(), taps.begin(), taps.end());
  products_shape.insert(products_shape.end(), {shape[1], num_elements});
  const te::Tensor products = te::Compute(
      products_shape,
      [&](const te::Indices& out) {
        const te::Indices tap(out.begin() + 1, out.end() - 2);
        return ReduceOver(Reducer::kSum, product(flat, out[0], out[1 + rank], tap, {out.back()}), {k});
      },
      "products");
  const ProductAt made = [&](const PrimExpr& n, const PrimExpr& output, const TapPlaces::Hit& hit) {
    te::Indices from = {n};
    from.insert(from.end(), hit.taps.begin(), hit.taps.end());
    from.insert(from.end(), {output, flat_place(hit.elements)});
    return products(from);
  };
  return CastTo(FoldTaps(made, wide, {}, places, shape), dtype);
}

te::Tensor Fold(const te::Tensor& data, const Shape& taps, const Shape& counts, const Window& window,
                const Shape& shape) {
  const TapPlaces places(window, taps, counts);
  const DataType wide = WideType(data.dtype());
  const auto flat = [](PrimExpr first, const te::Indices& indices, const Shape& extents) {
    for (size_t i = 0; i < indices.size(); ++i) first = first * extents[i] + indices[i];
    return first;
  };
  const ProductAt element = [&](const PrimExpr& n, const PrimExpr& channel, const TapPlaces::Hit& hit) {
    return ir::Cast(wide, data({n, flat(channel, hit.taps, taps), flat(ir::Int64(0), hit.elements, counts)}));
  };
  return CastTo(FoldTaps(element, wide, {}, places, shape), data.dtype());
}

te::Tensor MaxPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window, Shape shape) {
  // Of the axes but the last one, along which elements lie side by side, first: what windows share of them is compared
  // once, and each comparison takes whole rows.
  const bool ceil_mode = IsCeil(data, pool_size, window, shape);
  te::Tensor rows = data;
  std::vector<int64_t> rest_size = pool_size;
  Window rest = window;
  for (size_t axis = 0; axis + 1 < window.rank(); ++axis) {
    if (pool_size[axis] < 2 || pool_size[axis] > kMaxPoolTapsAtOnce) continue;
    rows = GreatestAlongAxis(rows, pool_size[axis], window, axis, ceil_mode, shape[2 + axis]);
    rest_size[axis] = rest.strides[axis] = rest.dilation[axis] = 1;
    rest.padding[axis] = rest.padding[window.rank() + axis] = 0;
  }
  const auto same = [](PrimExpr e) { return e; };
  return Pool(Reducer::kMax, rows, rest_size, rest, std::move(shape), same, "pool_max");
}

te::Tensor MaxPoolAtOnce(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window,
                         Shape shape) {
  const auto same = [](PrimExpr e) { return e; };
  return Pool(Reducer::kMax, data, pool_size, window, std::move(shape), same, "pool_max");
}

te::Tensor AvgPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window, Shape shape,
                   bool count_include_pad) {
  const DataType wide = WideType(data.dtype());
  const auto widen = [&](PrimExpr e) { return ir::Cast(wide, std::move(e)); };
  const te::Tensor sum = Pool(Reducer::kSum, data, pool_size, window, std::move(shape), widen, "pool_sum");
  std::vector<std::string> axis_names;
  for (size_t i = 0; i < sum.shape().size(); ++i) axis_names.push_back("ax" + std::to_string(i));
  return te::Compute(
      sum.shape(),
      [&](const te::Indices& i) {
        PrimExpr count = ir::Int64(1);
        for (size_t axis = 0; axis < window.rank(); ++axis) {
          const int64_t behind = count_include_pad ? window.padding[window.rank() + axis] : 0;
          count = count * CountTaps(i[2 + axis], pool_size[axis], window, axis, data.shape()[2 + axis] + behind,
                                    count_include_pad);
        }
        return ir::Cast(data.dtype(), sum(i) / ir::Cast(wide, ir::Max(count, ir::Int64(1))));
      },
      "pool_avg", std::move(axis_names));
}

te::Tensor LpPool(const te::Tensor& data, const std::vector<int64_t>& pool_size, const Window& window, Shape shape,
                  int64_t p) {
  const DataType wide = WideType(data.dtype());
  const auto power = [&](const PrimExpr& e) {
    const PrimExpr x = ir::CallIntrinsic(ir::Intrinsic::kFabs, {ir::Cast(wide, e)});
    return p == 1 ? x : ir::CallIntrinsic(ir::Intrinsic::kPow, {x, ir::MakeConst(wide, static_cast<double>(p))});
  };
  const te::Tensor sum = Pool(Reducer::kSum, data, pool_size, window, std::move(shape), power, "pool_sum");
  const auto root = [&](PrimExpr e) {
    if (p == 2) e = ir::CallIntrinsic(ir::Intrinsic::kSqrt, {e});
    if (p > 2) e = ir::CallIntrinsic(ir::Intrinsic::kPow, {e, ir::MakeConst(wide, 1.0 / static_cast<double>(p))});
    return ir::Cast(data.dtype(), std::move(e));
  };
  return Map(sum, root, "pool_lp");
}

}  // namespace ingot::op::topi
