// Resampling: image.resize along any axes, and image.grid_sample at given places. Names of modes and attributes are
// TVM's where it has them, their meaning is ONNX's (Resize, GridSample).
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "compiler/op/build.h"
#include "compiler/op/families.h"
#include "compiler/op/infer.h"
#include "compiler/op/reference.h"
#include "compiler/op/topi/resize.h"

namespace ingot::op {
namespace {

using topi::Coordinates;
using topi::GridPadding;
using topi::Interpolation;
using topi::Rounding;

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};
constexpr Named<Interpolation> kMethods[] = {
    {"nearest", Interpolation::kNearest}, {"linear", Interpolation::kLinear}, {"cubic", Interpolation::kCubic}};
constexpr Named<Coordinates> kCoordinates[] = {{"half_pixel", Coordinates::kHalfPixel},
                                               {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
                                               {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
                                               {"align_corners", Coordinates::kAlignCorners},
                                               {"asymmetric", Coordinates::kAsymmetric},
                                               {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNn},
                                               {"tf_crop_and_resize", Coordinates::kTfCropAndResize}};
constexpr Named<Rounding> kRoundings[] = {{"round_prefer_floor", Rounding::kPreferFloor},
                                          {"round_prefer_ceil", Rounding::kPreferCeil},
                                          {"floor", Rounding::kFloor},
                                          {"ceil", Rounding::kCeil},
                                          {"by_scale", Rounding::kByScale}};
constexpr Named<GridPadding> kGridPaddings[] = {
    {"zeros", GridPadding::kZeros}, {"border", GridPadding::kBorder}, {"reflection", GridPadding::kReflection}};

// The value that an attribute names.
template <typename Table>
auto Find(const ir::Call& call, const char* attr, const Table& table) -> Result<decltype(table[0].value)> {
  const std::string& name = call->attrs.GetString(attr);
  std::string known;
  for (const auto& row : table) {
    if (row.name == name) return row.value;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return OpError(call, std::string(attr) + ": expected one of " + known + ", got \"" + name + "\"");
}

// ---- image.resize
// The numbers of an attribute, which is None or has `count` of them.
Result<std::vector<double>> Numbers(const ir::Call& call, const char* attr, size_t count) {
  const ir::AttrValue* value = call->attrs.Find(attr);
  if (value->is_none()) return std::vector<double>();
  std::vector<double> numbers;
  if (const auto* list = value->get<ir::AttrList>()) {
    for (const ir::AttrValue& item : *list) {
      if (const auto* number = item.get<double>()) numbers.push_back(*number);
      if (const auto* number = item.get<int64_t>()) numbers.push_back(static_cast<double>(*number));
    }
    if (numbers.size() == count && list->size() == count) return numbers;
  }
  return OpError(call, std::string(attr) + ": expected " + std::to_string(count) + " numbers");
}

// The third argument, which may be absent: pairs of lengths, of whose quotients the scale of all axes is the least, or
// the greatest; or a tensor of floats, the scales of the axes.
struct ResizeCall {
  std::vector<topi::ResizeAxis> axes;
  topi::ResizeMode mode;
  Dims ratios;
  bool takes_greatest = false;
  bool has_scale_tensor = false;
};
Status CheckScaleTensor(const ir::Call& call, size_t num_axes) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType scales, TensorArg(call, 2));
  const bool has_other_length = scales->dims && !scales->dims->empty() && ir::AsConstInt(scales->dims->front()) &&
                                !ir::IsConstInt(scales->dims->front(), static_cast<int64_t>(num_axes));
  if ((scales->dtype && !scales->dtype->is_floating()) || (scales->rank >= 0 && scales->rank != 1) ||
      has_other_length) {
    return OpError(call, "scales: expected " + std::to_string(num_axes) + " floats, got " + Describe(scales));
  }
  return Status();
}
Result<ResizeCall> ReadResize(const ir::Call& call, int rank) {
  ResizeCall resize;
  INGOT_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(call, IntsAttr(call, "axes"), rank));
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> scales, Numbers(call, "scales", axes.size()));
  INGOT_ASSIGN_OR_RETURN(const std::vector<double> roi, Numbers(call, "roi", 2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    topi::ResizeAxis axis{static_cast<size_t>(axes[i]), std::nullopt};
    if (!scales.empty()) {
      if (!(scales[i] > 0) || std::isinf(scales[i])) {
        return OpError(call, "scales: expected positive numbers, got " + std::to_string(scales[i]));
      }
      axis.scale = scales[i];
    }
    if (!roi.empty()) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[axes.size() + i];
    }
    resize.axes.push_back(axis);
  }
  INGOT_ASSIGN_OR_RETURN(resize.mode.interpolation, Find(call, "method", kMethods));
  INGOT_ASSIGN_OR_RETURN(resize.mode.coordinates, Find(call, "coordinate_transformation_mode", kCoordinates));
  INGOT_ASSIGN_OR_RETURN(resize.mode.rounding, Find(call, "rounding_method", kRoundings));
  resize.mode.cubic_alpha = call->attrs.GetFloat("cubic_alpha");
  resize.mode.exclude_outside = call->attrs.GetBool("cubic_exclude");
  resize.mode.extrapolation = call->attrs.GetFloat("extrapolation_value");
  const std::string& policy = call->attrs.GetString("policy");
  if (policy != "not_larger" && policy != "not_smaller") {
    return OpError(call, "policy: expected \"not_larger\" or \"not_smaller\", got \"" + policy + "\"");
  }
  resize.takes_greatest = policy == "not_smaller";
  if (call->args.size() > 2 && ir::As<ir::TensorTypeNode>(call->args[2]->type) != nullptr) {
    resize.has_scale_tensor = true;
    INGOT_RETURN_IF_ERROR(CheckScaleTensor(call, axes.size()));
    if (!scales.empty()) return OpError(call, "scales: there are two of each axis");
  } else if (call->args.size() > 2) {
    INGOT_ASSIGN_OR_RETURN(std::optional<Dims> ratios, ShapeArg(call, 2));
    if (!ratios || ratios->empty() || ratios->size() % 2 != 0 || !scales.empty()) {
      return OpError(call, "ratios: expected pairs of lengths, without scales");
    }
    resize.ratios = *std::move(ratios);
  }
  return resize;
}

Result<ir::Type> InferResize(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  int rank = -1;
  INGOT_ASSIGN_OR_RETURN(const std::optional<Dims> size, ShapeArg(call, 1, &rank));
  if (x->rank >= 0 && rank >= 0 && x->rank != rank) {
    return OpError(call, "expected a size of rank " + std::to_string(x->rank) + ", got rank " + std::to_string(rank));
  }
  if (x->rank >= 0) {
    INGOT_ASSIGN_OR_RETURN(const ResizeCall resize, ReadResize(call, x->rank));
    if (resize.mode.interpolation != Interpolation::kNearest && x->dtype && x->dtype->is_bool())
      return OpError(call, "expected numbers, got " + Describe(x));
    for (size_t i = 0; size && x->dims && i < size->size(); ++i) {
      const bool resized = std::ranges::any_of(resize.axes, [&](const auto& axis) { return axis.axis == i; });
      if (!resized && DimsDiffer((*size)[i], (*x->dims)[i])) {
        return OpError(call, "size: axis " + std::to_string(i) + " is not resized, expected " +
                                 Describe((*x->dims)[i]) + ", got " + Describe((*size)[i]));
      }
      if (resized && ir::IsConstInt((*x->dims)[i], 0) && !ir::IsConstInt((*size)[i], 0)) {
        return OpError(call, "nothing can be resized to something");
      }
    }
  }
  if (size) return TensorOf(*size, x->dtype, x);
  return TensorOfRank(x->rank, x->dtype, x);
}

// A place along an axis of the input, and its weight.
struct Tap {
  int64_t position;
  double weight;
};

double CubicWeight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// The taps around a place, which may lie outside.
std::vector<Tap> TapsAt(double place, Interpolation interpolation, double cubic_alpha) {
  const double first = std::floor(place);
  std::vector<Tap> taps;
  const bool is_cubic = interpolation == Interpolation::kCubic;
  for (int64_t tap = is_cubic ? -1 : 0; tap <= (is_cubic ? 2 : 1); ++tap) {
    const double distance = std::fabs(place - first - static_cast<double>(tap));
    taps.push_back({static_cast<int64_t>(first) + tap, is_cubic ? CubicWeight(distance, cubic_alpha) : 1 - distance});
  }
  return taps;
}

// In float or in double.
template <typename F>
F PlaceOf(F x, const topi::ResizeAxis& axis, Coordinates coordinates, F in, F out) {
  const auto scale = static_cast<F>(axis.scale.value_or(0));
  const F half = 0.5;
  const auto scaled = [&](F place) { return axis.scale ? place / scale : place * in / out; };
  const auto begin = static_cast<F>(axis.roi_begin), end = static_cast<F>(axis.roi_end);
  switch (coordinates) {
    case Coordinates::kHalfPixel:
      return scaled(x + half) - half;
    case Coordinates::kHalfPixelSymmetric:
      if (!axis.scale) return scaled(x + half) - half;
      return static_cast<F>(double{in * half * (1 - out / (scale * in))} + (double{x} + 0.5) / double{scale} - 0.5);
    case Coordinates::kPytorchHalfPixel:
      return out > 1 ? scaled(x + half) - half : 0;
    case Coordinates::kAlignCorners:
      return out > 1 ? x * (in - 1) / ((axis.scale ? scale * in : out) - 1) : 0;
    case Coordinates::kAsymmetric:
      return scaled(x);
    case Coordinates::kTfHalfPixelForNn:
      return scaled(x + half);
    case Coordinates::kTfCropAndResize:
      if (out <= 1) return half * (begin + end) * (in - 1);
      return begin * (in - 1) + x * (end - begin) * (in - 1) / (out - 1);
  }
  INGOT_UNREACHABLE();
}

double RoundPlace(double place, Rounding rounding, bool shrinks, double slack) {
  switch (rounding) {
    case Rounding::kPreferFloor:
      return std::ceil(place - (0.5 + slack));
    case Rounding::kPreferCeil:
      return std::floor(place + (0.5 + slack));
    case Rounding::kFloor:
      return std::floor(place);
    case Rounding::kCeil:
      return std::ceil(place);
    case Rounding::kByScale:
      return shrinks ? std::ceil(place) : std::floor(place);
  }
  INGOT_UNREACHABLE();
}

// The weighted sum over all combinations of one tap per axis; `index` holds the other axes.
double SumTaps(const ReferenceTensor& x, const std::vector<std::pair<size_t, std::vector<Tap>>>& taps, Index index,
               size_t next = 0) {
  if (next == taps.size()) return GetNumber(x, Flatten(x.dims, index));
  double sum = 0;
  const auto& [axis, list] = taps[next];
  for (const Tap& tap : list) {
    index[axis] = std::clamp<int64_t>(tap.position, 0, x.dims[axis] - 1);
    sum += tap.weight * SumTaps(x, taps, index, next + 1);
  }
  return sum;
}

Result<std::vector<ReferenceTensor>> ReferenceResize(const ir::Call& call, std::span<const ReferenceTensor> inputs) {
  const ReferenceTensor& x = inputs[0];
  INGOT_ASSIGN_OR_RETURN(ResizeCall resize, ReadResize(call, static_cast<int>(x.dims.size())));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  std::optional<double> scale;
  for (size_t i = 0; i < resize.ratios.size(); i += 2) {
    const auto length = [&](size_t at) { return static_cast<double>(ir::AsConstInt(resize.ratios[at]).value_or(0)); };
    const double own = length(i) / length(i + 1);
    if (!scale || (resize.takes_greatest ? own > *scale : own < *scale)) scale = own;
  }
  const bool is_narrow = resize.ratios.empty();  // unless lengths alone say the scale, which is exact then
  for (topi::ResizeAxis& axis : resize.axes) axis.scale = scale ? scale : axis.scale;
  for (size_t i = 0; resize.has_scale_tensor && i < resize.axes.size(); ++i)
    resize.axes[i].scale = GetNumber(inputs[1], static_cast<int64_t>(i));
  const topi::ResizeMode& mode = resize.mode;
  const bool of_integers = !x.dtype.is_floating() && mode.interpolation != Interpolation::kNearest;
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    std::vector<std::pair<size_t, std::vector<Tap>>> all;
    bool is_inside = true;
    for (const topi::ResizeAxis& axis : resize.axes) {
      const bool takes_part = mode.coordinates == Coordinates::kTfCropAndResize && !axis.takes_all();
      if (!takes_part && x.dims[axis.axis] == dims[axis.axis] && axis.scale.value_or(1) == 1) continue;
      const auto in = static_cast<double>(x.dims[axis.axis]);
      const auto x_place = static_cast<double>(at[axis.axis]), length = static_cast<double>(dims[axis.axis]);
      double place = PlaceOf<double>(x_place, axis, mode.coordinates, in, length);
      is_inside = is_inside && place >= 0 && place <= in - 1;
      std::vector<Tap> taps;
      const bool is_nearest = mode.interpolation == Interpolation::kNearest;
      const bool finds_narrow = is_narrow && axis.scale && (is_nearest || of_integers);
      if (finds_narrow) {
        const auto narrow = [](double value) { return static_cast<float>(value); };
        place =
            static_cast<double>(PlaceOf<float>(narrow(x_place), axis, mode.coordinates, narrow(in), narrow(length)));
      }
      if (is_nearest) {
        const bool shrinks = axis.scale ? *axis.scale < 1 : length < in;
        const double slack = finds_narrow ? topi::kNarrowSlack : 0;
        taps = {{static_cast<int64_t>(RoundPlace(place, mode.rounding, shrinks, slack)), 1.0}};
      } else {
        taps = TapsAt(place, mode.interpolation, mode.cubic_alpha);
      }
      if (mode.interpolation == Interpolation::kCubic && mode.exclude_outside) {
        double total = 0;
        for (Tap& tap : taps) {
          if (tap.position < 0 || tap.position >= x.dims[axis.axis]) tap.weight = 0;
          total += tap.weight;
        }
        for (Tap& tap : taps) tap.weight /= total;
      }
      std::erase_if(taps, [](const Tap& tap) { return tap.weight == 0; });  // of infinities, too
      all.emplace_back(axis.axis, std::move(taps));
    }
    if (mode.coordinates == Coordinates::kTfCropAndResize && !is_inside) {
      SetNumber(out, flat, mode.extrapolation);
    } else {
      const double sum = SumTaps(x, all, at);
      const bool is_cut = of_integers && mode.interpolation == Interpolation::kLinear;
      SetNumber(out, flat,
                is_cut        ? std::trunc(sum + std::copysign(topi::kFractionSlack, sum))
                : of_integers ? std::nearbyint(sum)
                              : sum);
    }
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineResize(const TeArgs& args) {
  ResizeCall resize = *ReadResize(args.call(), args.input(0).rank());
  ir::PrimExpr scale;
  for (size_t i = 0; i < resize.ratios.size(); i += 2) {
    const auto length = [&](size_t at) { return ir::Cast(DataType::Float(64), args.Own(resize.ratios[at])); };
    const ir::PrimExpr own = length(i) / length(i + 1);
    scale = scale == nullptr ? own : resize.takes_greatest ? ir::Max(scale, own) : ir::Min(scale, own);
  }
  for (size_t i = 0; i < resize.axes.size(); ++i) {
    resize.axes[i].ratio = resize.has_scale_tensor
                               ? ir::Cast(DataType::Float(64), args.input(1)({ir::Int64(static_cast<int64_t>(i))}))
                               : scale;
    resize.axes[i].is_given = resize.has_scale_tensor;
  }
  return topi::Resize(args.input(0), resize.axes, resize.mode, args.out_dims());
}

// ---- image.grid_sample
struct GridCall {
  Interpolation method;
  GridPadding padding;
  bool align_corners;
};
Result<GridCall> ReadGrid(const ir::Call& call) {
  GridCall grid{};
  INGOT_ASSIGN_OR_RETURN(grid.method, Find(call, "method", kMethods));
  INGOT_ASSIGN_OR_RETURN(grid.padding, Find(call, "padding_mode", kGridPaddings));
  grid.align_corners = call->attrs.GetBool("align_corners");
  return grid;
}

Result<ir::Type> InferGridSample(const ir::Call& call) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType x, TensorArg(call, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorType grid, TensorArg(call, 1));
  INGOT_RETURN_IF_ERROR(ReadGrid(call).status());
  for (const ir::TensorType& tensor : {x, grid}) {
    if (tensor->dtype && !tensor->dtype->is_floating())
      return OpError(call, "expected floats, got " + Describe(tensor));
  }
  if (!x->dims || !grid->dims) return TensorOfRank(x->rank, x->dtype, x);
  const Dims& in = *x->dims;
  const Dims& places = *grid->dims;
  if (in.size() < 3 || places.size() != in.size() || DimsDiffer(places[0], in[0]) ||
      DimsDiffer(places.back(), ir::Int64(static_cast<int64_t>(in.size()) - 2))) {
    return OpError(call, "expected data [n, c, spatial...] and a grid [n, ..., coordinates], got " + Describe(x) +
                             " and " + Describe(grid));
  }
  Dims dims = {in[0], in[1]};
  dims.insert(dims.end(), places.begin() + 1, places.end() - 1);
  for (size_t axis = 2; axis < in.size(); ++axis) INGOT_RETURN_IF_ERROR(CheckHasElements(call, x, axis, dims));
  return TensorOf(std::move(dims), x->dtype, x);
}

double Reflect(double x, double low, double high) {
  if (high <= low) return low;
  while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  return x;
}

Result<std::vector<ReferenceTensor>> ReferenceGridSample(const ir::Call& call,
                                                         std::span<const ReferenceTensor> inputs) {
  INGOT_ASSIGN_OR_RETURN(const GridCall mode, ReadGrid(call));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ConstantDims(call, call->type));
  const ReferenceTensor& x = inputs[0];
  const ReferenceTensor& grid = inputs[1];
  const size_t rank = dims.size() - 2;
  ReferenceTensor out = NewReference(x.dtype, dims);
  ForEachIndex(dims, [&](const Index& at, int64_t flat) {
    std::vector<std::pair<size_t, std::vector<Tap>>> all;
    for (size_t axis = 0; axis < rank; ++axis) {
      Index at_grid(at.begin() + 1, at.end());
      at_grid[0] = at[0];
      at_grid.push_back(static_cast<int64_t>(rank - 1 - axis));
      const auto length = static_cast<double>(x.dims[2 + axis]);
      const double low = mode.align_corners ? 0 : -0.5;
      const double high = mode.align_corners ? length - 1 : length - 0.5;
      // From -1 .. 1 to low .. high.
      double place = low + (GetNumber(grid, Flatten(grid.dims, at_grid)) + 1) / 2 * (high - low);
      if (mode.method == Interpolation::kNearest) place = std::nearbyint(place);
      if (!(place >= low && place <= high)) {
        const bool is_cubic = mode.method == Interpolation::kCubic;  // each tap is clamped to the border instead
        if (mode.padding == GridPadding::kBorder && !is_cubic) place = std::clamp(place, 0.0, length - 1);
        if (mode.padding == GridPadding::kReflection) place = Reflect(place, low, high);
      }
      std::vector<Tap> taps = {{static_cast<int64_t>(place), 1.0}};
      if (mode.method != Interpolation::kNearest) taps = TapsAt(place, mode.method, -0.75);
      for (Tap& tap : taps) {
        const auto position = static_cast<double>(tap.position);
        const bool is_outside = tap.position < 0 || tap.position >= x.dims[2 + axis];
        if (is_outside && mode.padding == GridPadding::kZeros) tap.weight = 0;
        if (mode.padding == GridPadding::kReflection) {
          tap.position = static_cast<int64_t>(Reflect(position, low, high));
        }
      }
      all.emplace_back(2 + axis, std::move(taps));
    }
    Index index(at.size(), 0);
    index[0] = at[0];
    index[1] = at[1];
    SetNumber(out, flat, SumTaps(x, all, index));
  });
  return std::vector<ReferenceTensor>{std::move(out)};
}

te::Tensor DefineGridSample(const TeArgs& args) {
  const GridCall mode = *ReadGrid(args.call());
  return topi::GridSample(args.input(0), args.input(1), mode.method, mode.padding, mode.align_corners, args.out_dims());
}

}  // namespace

std::vector<OpRow> ResizeOps() {
  std::vector<OpRow> rows;
  rows.push_back({.name = "image.resize",
                  .summary = "x resampled along axes to a size",
                  .arg_names = {"x", "size", "ratios"},
                  .num_optional_args = 1,
                  .attrs = {{"axes", AttrType::kInts},
                            {"scales", AttrType::kAny},
                            {"roi", AttrType::kAny},
                            {"method", AttrType::kString, "nearest"},
                            {"coordinate_transformation_mode", AttrType::kString, "half_pixel"},
                            {"rounding_method", AttrType::kString, "round_prefer_floor"},
                            {"cubic_alpha", AttrType::kFloat, -0.75},
                            {"cubic_exclude", AttrType::kBool, false},
                            {"extrapolation_value", AttrType::kFloat, 0.0},
                            {"policy", AttrType::kString, "not_larger"}},
                  .infer = InferResize,
                  .reference = ReferenceResize,
                  .implementations = {TeImplementation<DefineResize>()},
                  .cases = {.rank0 = false}});
  rows.back().cases.dtypes = FloatDataTypes();
  for (const DataType dtype : {DataType::Int(32), DataType::Int(8), DataType::UInt(8)}) {
    rows.back().cases.dtypes.push_back(dtype);
  }
  rows.push_back({.name = "image.grid_sample",
                  .summary = "data [n, c, spatial...] at the places of grid [n, ..., coordinates from -1 to 1]",
                  .arg_names = {"data", "grid"},
                  .attrs = {{"method", AttrType::kString, "linear"},
                            {"padding_mode", AttrType::kString, "zeros"},
                            {"align_corners", AttrType::kBool, false}},
                  .infer = InferGridSample,
                  .reference = ReferenceGridSample,
                  .implementations = {TeImplementation<DefineGridSample>()},
                  .cases = {.rank0 = false}});
  rows.back().cases.dtypes = FloatDataTypes();
  return rows;
}

}  // namespace ingot::op
