// Resize resamples one axis after the other, each by a stage that adds up the weighted taps around a place; a whole
// factor of nearest neighbours repeats elements without arithmetic on floats. GridSample computes the places by a stage
// per axis, the taps of all axes by tables that the channels share, and adds up what they read.
#include "compiler/op/topi/resize.h"

#include <cmath>

#include "compiler/op/infer.h"
#include "compiler/op/topi/reduction.h"

namespace ingot::op::topi {
namespace {

const DataType kDouble = DataType::Float(64);

PrimExpr D(double value) { return ir::FloatImm(kDouble, value); }
PrimExpr Double(PrimExpr x) { return ir::Cast(kDouble, std::move(x)); }
PrimExpr Floor(PrimExpr x) { return ir::CallIntrinsic(ir::Intrinsic::kFloor, {std::move(x)}); }
PrimExpr Ceil(PrimExpr x) { return ir::CallIntrinsic(ir::Intrinsic::kCeil, {std::move(x)}); }
PrimExpr Int(PrimExpr x) { return ir::Cast(DataType::Int(64), std::move(x)); }
PrimExpr Clamp(PrimExpr x, const PrimExpr& extent) { return ir::Max(ir::Min(std::move(x), extent - 1), ir::Int64(0)); }

// The place of the input that place x of the result stands for, computed in this dtype of floats.
PrimExpr Place(const PrimExpr& x, const ResizeAxis& axis, Coordinates coordinates, const PrimExpr& in,
               const PrimExpr& out, DataType dtype = kDouble) {
  const auto number = [&](double value) { return ir::FloatImm(dtype, value); };
  const auto cast = [&](const PrimExpr& value) { return ir::Cast(dtype, value); };
  // A ratio of lengths is divided by last, so that places that are whole numbers come out exactly.
  const PrimExpr scale = axis.scale ? number(*axis.scale) : axis.ratio != nullptr ? cast(axis.ratio) : nullptr;
  const auto scaled = [&](const PrimExpr& place) {
    return scale != nullptr ? place / scale : place * cast(in) / cast(out);
  };
  const PrimExpr half_pixel = scaled(cast(x) + number(0.5)) - number(0.5);
  const PrimExpr is_one = ir::Equal(out, ir::Int64(1));
  const PrimExpr steps = cast(ir::Max(out - 1, ir::Int64(1)));
  switch (coordinates) {
    case Coordinates::kHalfPixel:
      return half_pixel;
    case Coordinates::kHalfPixelSymmetric: {
      if (scale == nullptr) return half_pixel;
      // The offset that centres is of this dtype; it is added in float64, as ONNX Runtime adds it.
      const PrimExpr rounded = cast(out) / (scale * cast(in));
      const PrimExpr offset = cast(in) * number(0.5) * (number(1) - rounded);
      return cast(Double(offset) + (Double(x) + D(0.5)) / Double(scale) - D(0.5));
    }
    case Coordinates::kPytorchHalfPixel:
      return ir::Select(is_one, number(0), half_pixel);
    case Coordinates::kAlignCorners:
      if (scale == nullptr) return cast(x) * cast(in - 1) / steps;
      // As in ONNX's reference, the length is in * scale before it is rounded down.
      return ir::Select(is_one, number(0), cast(x) * cast(in - 1) / (scale * cast(in) - number(1)));
    case Coordinates::kAsymmetric:
      return scaled(cast(x));
    case Coordinates::kTfHalfPixelForNn:
      return scaled(cast(x) + number(0.5));
    case Coordinates::kTfCropAndResize: {
      const PrimExpr last = cast(in - 1);
      const PrimExpr place =
          number(axis.roi_begin) * last + cast(x) * number(axis.roi_end - axis.roi_begin) * last / steps;
      return ir::Select(is_one, number(0.5 * (axis.roi_begin + axis.roi_end)) * last, place);
    }
  }
  INGOT_UNREACHABLE();
}

// Whether an axis gets shorter.
PrimExpr Shrinks(const ResizeAxis& axis, const PrimExpr& in, const PrimExpr& out) {
  if (axis.scale) return ir::BoolImm(*axis.scale < 1);
  return axis.ratio != nullptr ? axis.ratio < D(1) : out < in;
}

// slack: how far from the middle between two elements a place still counts as there.
PrimExpr Round(const PrimExpr& place, Rounding rounding, const PrimExpr& shrinks, double slack) {
  switch (rounding) {
    case Rounding::kPreferFloor:
      return Ceil(place - D(0.5 + slack));
    case Rounding::kPreferCeil:
      return Floor(place + D(0.5 + slack));
    case Rounding::kFloor:
      return Floor(place);
    case Rounding::kCeil:
      return Ceil(place);
    case Rounding::kByScale:
      return ir::Select(shrinks, Ceil(place), Floor(place));
  }
  INGOT_UNREACHABLE();
}

// Growing by a whole number repeats elements: no floating-point arithmetic. Places between two elements are then at
// least half a repeat's width away from the middle.
constexpr double kMostRepeats = 1e5;
static_assert(kNarrowSlack * kMostRepeats < 0.5);

bool RepeatsElements(const ResizeAxis& axis, const ResizeMode& mode, const PrimExpr& in, const PrimExpr& out,
                     int64_t* times) {
  const auto in_length = ir::AsConstInt(in);
  const auto out_length = ir::AsConstInt(out);
  double scale = 0;
  if (axis.ratio != nullptr) return false;
  if (axis.scale) {
    scale = *axis.scale;
  } else if (in_length && out_length && *in_length > 0) {
    scale = static_cast<double>(*out_length) / static_cast<double>(*in_length);
  }
  if (scale < 1 || scale > kMostRepeats || scale != std::floor(scale)) return false;
  *times = static_cast<int64_t>(scale);
  const bool is_exact = DimsEqual(in * *times, out);
  const bool nearest_half = mode.rounding == Rounding::kPreferFloor || mode.rounding == Rounding::kPreferCeil;
  const bool floors = mode.rounding == Rounding::kFloor || mode.rounding == Rounding::kByScale;
  return is_exact && ((mode.coordinates == Coordinates::kHalfPixel && nearest_half) ||
                      (mode.coordinates == Coordinates::kAsymmetric && floors));
}

// Keys' cubic convolution at distance d >= 0 from the tap.
PrimExpr CubicWeight(const PrimExpr& d, double a) {
  const PrimExpr near = ((D(a + 2) * d - D(a + 3)) * d) * d + D(1);
  const PrimExpr far = ((D(a) * d - D(5 * a)) * d + D(8 * a)) * d - D(4 * a);
  return ir::Select(d <= D(1), near, far);
}

// What the places along one axis of the result take from the input: per tap the position, and the weight in the dtype of
// the sum. They depend on the place alone, so they are stages of their own: computed once for all rows.
struct TapTables {
  std::vector<te::Tensor> positions;  // int64 [out]
  std::vector<te::Tensor> weights;    // [out]; none for nearest neighbours
  te::Tensor total;                   // of the weights [out]; null if they add up to 1
};

TapTables MakeTables(const ResizeAxis& axis, const ResizeMode& mode, const PrimExpr& in, const PrimExpr& out,
                     DataType dtype, bool of_integers) {
  const bool is_nearest = mode.interpolation == Interpolation::kNearest;
  const bool is_narrow = (is_nearest || of_integers) && axis.has_narrow_scale();
  const DataType places = is_narrow ? DataType::Float(32) : kDouble;
  const bool takes_part = mode.coordinates == Coordinates::kTfCropAndResize && !axis.takes_all();
  const auto place_of = [&](const PrimExpr& x) {
    const PrimExpr place = Double(Place(x, axis, mode.coordinates, in, out, places));
    if (axis.ratio == nullptr || takes_part) return place;
    // An axis that keeps its length at a scale of 1 is not resampled.
    return ir::Select(ir::And(ir::Equal(axis.ratio, D(1)), ir::Equal(in, out)), Double(x), place);
  };
  const auto table = [&](const char* name, const std::function<PrimExpr(const PrimExpr& place)>& fn) {
    return te::Compute(
        {out}, [&](const te::Indices& i) { return fn(place_of(i[0])); }, name);
  };
  TapTables tables;
  if (mode.interpolation == Interpolation::kNearest) {
    tables.positions = {table("resize_position", [&](const PrimExpr& place) {
      return Clamp(Int(Round(place, mode.rounding, Shrinks(axis, in, out), is_narrow ? kNarrowSlack : 0)), in);
    })};
    return tables;
  }
  const bool is_cubic = mode.interpolation == Interpolation::kCubic;
  const auto weight_of = [&](const PrimExpr& place, int64_t tap) {
    // The fraction lies in [0, 1): which side of a tap it is on is known.
    const PrimExpr first = Floor(place), fraction = place - first;
    const auto offset = static_cast<double>(tap);
    const PrimExpr distance = tap <= 0 ? fraction - D(offset) : D(offset) - fraction;
    const PrimExpr weight = is_cubic ? CubicWeight(distance, mode.cubic_alpha) : D(1) - distance;
    if (!is_cubic || !mode.exclude_outside) return weight;
    const PrimExpr position = Int(first) + tap;
    return ir::Select(ir::And(position >= ir::Int64(0), position < in), weight, D(0));
  };
  const int64_t begin = is_cubic ? -1 : 0, end = is_cubic ? 3 : 2;
  for (int64_t tap = begin; tap < end; ++tap) {
    tables.positions.push_back(
        table("resize_position", [&](const PrimExpr& place) { return Clamp(Int(Floor(place)) + tap, in); }));
    tables.weights.push_back(
        table("resize_weight", [&](const PrimExpr& place) { return ir::Cast(dtype, weight_of(place, tap)); }));
  }
  if (!is_cubic || !mode.exclude_outside) return tables;
  tables.total = table("resize_weights", [&](const PrimExpr& place) {
    PrimExpr sum = weight_of(place, begin);
    for (int64_t tap = begin + 1; tap < end; ++tap) sum = sum + weight_of(place, tap);
    return ir::Cast(dtype, sum);
  });
  return tables;
}

// The dtype of weights and sums: the error of sums of integers of up to 32 bits stays far below kFractionSlack.
DataType WeightType(DataType dtype) {
  if (!dtype.is_floating()) return DataType::Float(dtype.bits > 8 ? 64 : 32);
  return Wide(ir::MakeConst(dtype, 0))->dtype;
}

// A sum as an element of the result.
PrimExpr Narrow(DataType dtype, const PrimExpr& sum, Interpolation interpolation) {
  if (dtype.is_floating() || interpolation == Interpolation::kNearest) return ir::Cast(dtype, sum);
  const PrimExpr wide = Double(sum);
  if (interpolation == Interpolation::kLinear) {
    return ir::Cast(dtype, ir::Select(wide < D(0), wide - D(kFractionSlack), wide + D(kFractionSlack)));
  }
  const double high = std::ldexp(1.0, dtype.is_int() ? dtype.bits - 1 : dtype.bits);
  const double greatest = dtype.bits < 64 ? high - 1 : std::nextafter(high, 0);
  const PrimExpr whole = ir::CallIntrinsic(ir::Intrinsic::kNearbyInt, {wide});
  const PrimExpr kept = ir::Max(ir::Min(whole, D(greatest)), D(dtype.is_int() ? -high : 0));
  return ir::Cast(dtype, kept);
}

// x resampled along one axis.
te::Tensor ResizeAlong(const te::Tensor& x, const ResizeAxis& axis, const ResizeMode& mode, const PrimExpr& out,
                       bool of_integers) {
  const size_t at = axis.axis;
  const PrimExpr in = x.shape()[at];
  Shape shape = x.shape();
  shape[at] = out;
  const auto element = [&](te::Indices index, PrimExpr place) {
    index[at] = std::move(place);
    return x(index);
  };
  int64_t times = 0;
  if (mode.interpolation == Interpolation::kNearest && RepeatsElements(axis, mode, in, out, &times)) {
    return te::Compute(
        shape, [&](const te::Indices& i) { return element(i, ir::FloorDiv(i[at], ir::Int64(times))); },
        "resize_nearest");
  }
  const DataType dtype = WeightType(x.dtype());
  const TapTables tables = MakeTables(axis, mode, in, out, dtype, of_integers);
  if (mode.interpolation == Interpolation::kNearest) {
    return te::Compute(
        shape, [&](const te::Indices& i) { return element(i, tables.positions[0](i[at])); }, "resize_nearest");
  }
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        PrimExpr sum;
        for (size_t tap = 0; tap < tables.positions.size(); ++tap) {
          // What has no weight has no part, infinities included: an axis of unknown length may keep it.
          const PrimExpr weight = tables.weights[tap](i[at]), nothing = ir::MakeConst(dtype, 0);
          const PrimExpr product = ir::Cast(dtype, element(i, tables.positions[tap](i[at]))) * weight;
          const PrimExpr term = ir::Select(ir::NotEqual(weight, nothing), product, nothing);
          sum = sum == nullptr ? term : sum + term;
        }
        return tables.total == nullptr ? sum : sum / tables.total(i[at]);
      },
      mode.interpolation == Interpolation::kCubic ? "resize_cubic" : "resize_linear");
}

}  // namespace

te::Tensor Resize(const te::Tensor& x, const std::vector<ResizeAxis>& axes, const ResizeMode& mode,
                  const Shape& shape) {
  te::Tensor result = x;
  for (const ResizeAxis& axis : axes) {
    // An axis that keeps its length at a scale of 1 is not resampled, unless a part is cropped.
    const bool takes_part = mode.coordinates == Coordinates::kTfCropAndResize && !axis.takes_all();
    const bool keeps = !takes_part && axis.scale.value_or(1) == 1 && axis.ratio == nullptr &&
                       DimsEqual(x.shape()[axis.axis], shape[axis.axis]);
    if (!keeps) result = ResizeAlong(result, axis, mode, shape[axis.axis], !x.dtype().is_floating());
  }
  const bool is_cropped = mode.coordinates == Coordinates::kTfCropAndResize;
  if (!is_cropped && !result.same_as(x) && result.dtype() == x.dtype()) return result;
  return te::Compute(
      shape,
      [&](const te::Indices& i) {
        const PrimExpr value =
            result.dtype() == x.dtype() ? result(i) : Narrow(x.dtype(), result(i), mode.interpolation);
        if (!is_cropped) return value;
        PrimExpr inside = ir::BoolImm(true);
        for (const ResizeAxis& axis : axes) {
          const PrimExpr& in = x.shape()[axis.axis];
          const PrimExpr place = Place(i[axis.axis], axis, mode.coordinates, in, shape[axis.axis]);
          inside = ir::And(inside, ir::And(place >= D(0), place <= Double(in - 1)));
        }
        return ir::Select(inside, value, ir::Cast(x.dtype(), D(mode.extrapolation)));  // (integers saturate)
      },
      "resize");
}

namespace {

// x mirrored at low and high until it lies between them.
PrimExpr Reflect(const PrimExpr& x, const PrimExpr& low, const PrimExpr& high) {
  const PrimExpr range = ir::Max(high - low, D(1e-30));
  const PrimExpr distance = ir::CallIntrinsic(ir::Intrinsic::kFabs, {x - low});
  const PrimExpr turns = Floor(distance / range);
  const PrimExpr rest = distance - turns * range;
  const PrimExpr is_even = ir::Equal(turns * D(0.5), Floor(turns * D(0.5)));
  return ir::Select(is_even, low + rest, high - rest);
}

}  // namespace

te::Tensor GridSample(const te::Tensor& x, const te::Tensor& grid, Interpolation interpolation, GridPadding padding,
                      bool align_corners, const Shape& shape) {
  const size_t rank = x.shape().size() - 2;
  const int64_t taps = interpolation == Interpolation::kNearest ? 1 : interpolation == Interpolation::kLinear ? 2 : 4;
  const auto low_of = [&](size_t) { return D(align_corners ? 0 : -0.5); };
  const auto high_of = [&](size_t axis) { return Double(x.shape()[2 + axis]) - D(align_corners ? 1 : 0.5); };
  // The places in the input, one tensor per spatial axis: [n, out...].
  Shape grid_shape(grid.shape().begin(), grid.shape().end() - 1);
  std::vector<te::Tensor> places;
  for (size_t axis = 0; axis < rank; ++axis) {
    places.push_back(te::Compute(
        grid_shape,
        [&](const te::Indices& i) {
          te::Indices index = i;
          index.push_back(ir::Int64(static_cast<int64_t>(rank - 1 - axis)));
          const PrimExpr normal = Double(grid(index));
          const PrimExpr length = Double(x.shape()[2 + axis]);
          PrimExpr place =
              align_corners ? (normal + D(1)) * D(0.5) * (length - D(1)) : ((normal + D(1)) * length - D(1)) * D(0.5);
          if (interpolation == Interpolation::kNearest) {
            place = ir::CallIntrinsic(ir::Intrinsic::kNearbyInt, {place});
          }
          // With cubic interpolation each tap is clamped to the border instead.
          if (padding == GridPadding::kZeros || (padding == GridPadding::kBorder && taps == 4)) return place;
          const PrimExpr low = low_of(axis), high = high_of(axis);
          const PrimExpr moved = padding == GridPadding::kBorder ? ir::Max(ir::Min(place, length - D(1)), D(0))
                                                                 : Reflect(place, low, high);
          return ir::Select(ir::And(place >= low, place <= high), place, moved);
        },
        "grid_places"));
  }
  // What tap k of a place reads and how much of it counts. Both are the same for all channels, so they are stages of
  // their own: [tap, n, out...].
  int64_t num_taps = 1;
  for (size_t axis = 0; axis < rank; ++axis) num_taps *= taps;
  Shape table_shape = grid_shape;
  table_shape.insert(table_shape.begin(), ir::Int64(num_taps));
  // The place along the axis that the tap reads, in float64, before it is limited to the input.
  const auto position_of = [&](size_t axis, const te::Indices& i) {
    const PrimExpr place = places[axis](te::Indices(i.begin() + 1, i.end()));
    if (taps == 1) return place;
    int64_t later = 1;  // taps of the axes behind
    for (size_t other = axis + 1; other < rank; ++other) later *= taps;
    const PrimExpr tap = ir::FloorMod(ir::FloorDiv(i[0], ir::Int64(later)), ir::Int64(taps));
    return Floor(place) + (Double(tap) - D(taps == 4 ? 1 : 0));
  };
  const te::Tensor elements = te::Compute(  // among the elements of a channel
      table_shape,
      [&](const te::Indices& i) {
        PrimExpr element = ir::Int64(0);
        for (size_t axis = 0; axis < rank; ++axis) {
          PrimExpr position = position_of(axis, i);
          const PrimExpr& extent = x.shape()[2 + axis];
          if (padding == GridPadding::kReflection) {
            const PrimExpr low = low_of(axis), high = high_of(axis);
            position = ir::Select(ir::And(position >= low, position <= high), position, Reflect(position, low, high));
          }
          element = element * extent + Clamp(Int(position), extent);
        }
        return element;
      },
      "grid_elements");
  const te::Tensor is_inside = te::Compute(
      table_shape,
      [&](const te::Indices& i) {
        PrimExpr inside = ir::BoolImm(true);
        for (size_t axis = 0; axis < rank; ++axis) {
          const PrimExpr position = position_of(axis, i);
          inside = ir::And(inside, ir::And(position >= D(0), position <= Double(x.shape()[2 + axis]) - D(1)));
        }
        return inside;
      },
      "grid_inside");
  const DataType dtype = Wide(ir::MakeConst(x.dtype(), 0))->dtype;
  const te::Tensor weights = te::Compute(
      table_shape,
      [&](const te::Indices& i) {
        PrimExpr weight = D(1);
        for (size_t axis = 0; axis < rank; ++axis) {
          const PrimExpr place = places[axis](te::Indices(i.begin() + 1, i.end()));
          const PrimExpr distance = ir::CallIntrinsic(ir::Intrinsic::kFabs, {place - position_of(axis, i)});
          weight = weight * (taps == 4 ? CubicWeight(distance, -0.75) : D(1) - distance);
        }
        if (padding != GridPadding::kZeros) return ir::Cast(dtype, weight);
        // Infinite places lie outside, where zeros are; a place that is no number makes the weight none.
        PrimExpr outside = ir::BoolImm(false);
        for (size_t axis = 0; axis < rank; ++axis) {
          const PrimExpr position = position_of(axis, i);
          outside = ir::Or(outside, ir::Or(position<D(0), position> Double(x.shape()[2 + axis]) - D(1)));
        }
        return ir::Cast(dtype, ir::Select(outside, D(0), weight));
      },
      "grid_weights");
  const te::Tensor sum = te::Compute(
      shape,
      [&](const te::Indices& out) {
        te::Indices at_table = out;  // [n, channel, out...]
        PrimExpr total;
        for (int64_t tap = 0; tap < num_taps; ++tap) {
          at_table.erase(at_table.begin() + 1);
          at_table.insert(at_table.begin(), ir::Int64(tap));
          PrimExpr rest = elements(at_table);
          te::Indices index(2 + rank);
          for (size_t axis = rank; axis-- > 1;) {
            index[2 + axis] = ir::FloorMod(rest, x.shape()[2 + axis]);
            rest = ir::FloorDiv(rest, x.shape()[2 + axis]);
          }
          index[0] = out[0], index[1] = out[1], index[2] = rest;
          PrimExpr value = Wide(x(index));
          if (padding == GridPadding::kZeros) {
            value = ir::Select(is_inside(at_table), value, ir::MakeConst(value->dtype, 0));
          }
          if (taps > 1) value = value * weights(at_table);
          total = total == nullptr ? value : total + value;
          at_table = out;
        }
        return total;
      },
      "grid_sample");
  return CastTo(sum, x.dtype());
}

}  // namespace ingot::op::topi
