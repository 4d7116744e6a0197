// Resize, Upsample, GridSample, AffineGrid.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/antialias.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/resize_region.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

constexpr double kMaxLength = 2147483648.0;  // of a resized dimension
constexpr int kLeastExponent = -30;          // of a scale that divides a symbolic dim by a power of two

bool IsNumber(const PrimExpr& length) { return ir::AsConstInt(length).has_value(); }

// Returns the numbers of a constant input; none if it is left out or empty.
Result<std::vector<double>> ConstantNumbers(const NodeImporter& node, size_t input, const char* what) {
  std::vector<double> numbers;
  if (!node.HasInput(input)) return numbers;
  const std::optional<ShapeValue> known = node.Known(input);
  if (!known || !known->is_constant()) return node.Unsupported(std::string(what) + " are not constant");
  for (const PrimExpr& element : known->elements) {
    const auto* number = ir::As<ir::FloatImmNode>(element);
    numbers.push_back(number != nullptr ? number->value : static_cast<double>(*ir::AsConstInt(element)));
  }
  return numbers;
}

ir::AttrValue Floats(const std::vector<double>& values) {
  ir::AttrList list;
  for (double value : values) list.emplace_back(value);
  return ir::AttrValue(std::move(list));
}

// Returns the float32 product of a length and a scale rounded down, as ONNX's shape inference and ONNX Runtime round it:
// 5 * 2.6 is 13, though the float32 next to 2.6 is less. That of a symbol is a formula where the scale is a power of
// two, which rounds nothing, and null otherwise: the function computes it when it runs.
Result<PrimExpr> Scaled(const NodeImporter& node, const PrimExpr& dim, double scale) {
  if (!(scale > 0) || scale > kMaxLength) return node.Invalid("a scale of " + std::to_string(scale));
  if (const auto length = ir::AsConstInt(dim)) {
    const double scaled = std::floor(static_cast<float>(*length) * static_cast<float>(scale));
    if (scaled > kMaxLength) return node.Invalid("a dimension scaled to " + std::to_string(scaled));
    return ir::Int64(static_cast<int64_t>(scaled));
  }
  int exponent = 0;
  if (std::frexp(scale, &exponent) != 0.5 || exponent < kLeastExponent) return PrimExpr(nullptr);
  if (scale >= 1) return op::SimplifyDim(dim * static_cast<int64_t>(scale));
  return op::SimplifyDim(ir::FloorDiv(dim, ir::Int64(static_cast<int64_t>(1 / scale))));
}

// The products of lengths and scales, a tensor of as many floats, rounded down as those above, as new symbols.
Result<std::vector<PrimExpr>> ScaledWhenRun(const NodeImporter& node, std::vector<PrimExpr> lengths, Expr scales) {
  const DataType narrow = DataType::Float(32), index = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(Expr resized, node.Bind("shape_to_tensor", {ShapeOf(std::move(lengths))}));
  INGOT_ASSIGN_OR_RETURN(resized, CastTo(node, resized, narrow));
  INGOT_ASSIGN_OR_RETURN(scales, CastTo(node, scales, narrow));
  INGOT_ASSIGN_OR_RETURN(resized, node.Bind("multiply", {resized, scales}));
  INGOT_ASSIGN_OR_RETURN(resized, node.Bind("floor", {resized}));
  // No scale that is 0, below, or no number has a length.
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, narrow));
  INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(-1, narrow));
  INGOT_ASSIGN_OR_RETURN(const Expr is_positive, node.Bind("greater", {scales, zero}));
  INGOT_ASSIGN_OR_RETURN(resized, node.Bind("where", {is_positive, resized, none}));
  INGOT_ASSIGN_OR_RETURN(resized, CastTo(node, resized, index));
  return node.NameLengths(resized);
}

// The scales or the sizes of a node, over all axes of the data or those in the attribute `axes`.
struct Sizes {
  std::vector<int64_t> axes;
  std::vector<double> scales;  // empty: the quotients of the lengths
  std::vector<PrimExpr> dims;  // dims of the result
  // Of an aspect ratio that is kept, where a length is a symbol: pairs of lengths, of whose quotients the scale is the
  // least or the greatest.
  std::vector<PrimExpr> ratios = {};
  std::string policy = {};
  Expr scale_tensor = nullptr;  // scales that run time knows alone
};

Result<Sizes> SizesFromScales(const NodeImporter& node, std::vector<int64_t> axes, std::vector<double> scales) {
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  if (scales.size() != axes.size()) {
    return node.Invalid("expected " + std::to_string(axes.size()) + " scales, got " + std::to_string(scales.size()));
  }
  std::vector<size_t> places;  // of the lengths that are computed when the function runs
  std::vector<PrimExpr> lengths;
  std::vector<float> factors;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<size_t>(axes[i]);
    INGOT_ASSIGN_OR_RETURN(PrimExpr scaled, Scaled(node, dims[at], scales[i]));
    if (scaled == nullptr) {
      places.push_back(at);
      lengths.push_back(dims[at]);
      factors.push_back(static_cast<float>(scales[i]));
    } else {
      dims[at] = std::move(scaled);
    }
  }
  if (!places.empty()) {
    const Expr tensor = ConstantOf(DataType::Float(32), {static_cast<int64_t>(factors.size())}, factors);
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> named, ScaledWhenRun(node, std::move(lengths), tensor));
    for (size_t i = 0; i < places.size(); ++i) dims[places[i]] = named[i];
  }
  return Sizes{std::move(axes), std::move(scales), std::move(dims)};
}

// Scales that data decide. Lengths are float32 products rounded down, as those of scales that are numbers. Axes whose
// scale is known to be 1 are left out.
Result<Sizes> SizesFromData(const NodeImporter& node, size_t input, const std::vector<int64_t>& all_axes) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(input));
  INGOT_ASSIGN_OR_RETURN(Expr scales, node.Input(input));
  const auto count = static_cast<int64_t>(all_axes.size());
  if (type->rank != 1 || !type->dims || !type->dtype->is_floating()) return node.Unsupported("scales of any number");
  if (!ir::IsConstInt(type->dims->front(), count)) {
    if (ir::AsConstInt(type->dims->front())) return node.Invalid("expected " + std::to_string(count) + " scales");
    scales = WithDims(node, std::move(scales), {ir::Int64(count)});
  }
  const std::optional<ShapeValue> known = node.Known(input);
  const auto is_one = [&](size_t i) {
    const auto* number = known ? ir::As<ir::FloatImmNode>(known->elements[i]) : nullptr;
    return number != nullptr && number->value == 1;
  };
  Sizes sizes{{}, {}, in};
  std::vector<int64_t> places;
  std::vector<PrimExpr> lengths;
  for (size_t i = 0; i < all_axes.size(); ++i) {
    if (is_one(i)) continue;
    sizes.axes.push_back(all_axes[i]);
    places.push_back(static_cast<int64_t>(i));
    lengths.push_back(in[static_cast<size_t>(all_axes[i])]);
  }
  if (static_cast<int64_t>(places.size()) < count) {
    const Expr numbers = ConstantOf(DataType::Int(64), {static_cast<int64_t>(places.size())}, places);
    INGOT_ASSIGN_OR_RETURN(scales, node.Bind("take", {scales, numbers}, {{"axis", int64_t{0}}}));
  }
  sizes.scale_tensor = scales;
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> named, ScaledWhenRun(node, std::move(lengths), scales));
  for (size_t i = 0; i < named.size(); ++i) sizes.dims[static_cast<size_t>(sizes.axes[i])] = named[i];
  return sizes;
}

// Scales of an input, numbers or not; none where it is left out or empty.
Result<std::optional<Sizes>> SizesFromInput(const NodeImporter& node, size_t input, const std::vector<int64_t>& axes) {
  const std::optional<ShapeValue> known = node.Known(input);
  if (!node.HasInput(input) || (known && known->elements.empty())) return std::optional<Sizes>();
  if (!known || !known->is_constant()) {
    INGOT_ASSIGN_OR_RETURN(Sizes sizes, SizesFromData(node, input, axes));
    return std::optional<Sizes>(std::move(sizes));
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<double> scales, ConstantNumbers(node, input, "scales"));
  INGOT_ASSIGN_OR_RETURN(Sizes sizes, SizesFromScales(node, axes, std::move(scales)));
  return std::optional<Sizes>(std::move(sizes));
}

// The same scale for all axes, so that no length, or none of them, is greater than what is asked for. The least of
// several rounded lengths is the rounded least one. The lengths, long formulas, get symbols.
Result<Sizes> KeepRatio(const NodeImporter& node, std::vector<int64_t> axes, const std::vector<PrimExpr>& lengths,
                        std::vector<PrimExpr> dims, const std::string& policy) {
  const std::vector<PrimExpr> in = dims;
  Sizes sizes{std::move(axes), {}, std::move(dims), {}, policy};
  for (size_t j = 0; j < sizes.axes.size(); ++j) {
    const PrimExpr& from = in[static_cast<size_t>(sizes.axes[j])];
    sizes.ratios.push_back(lengths[j]);
    sizes.ratios.push_back(from);
    for (const int64_t axis : sizes.axes) {
      const PrimExpr& own = in[static_cast<size_t>(axis)];
      const PrimExpr rounded =
          ir::FloorDiv(own * lengths[j] * int64_t{2} + from, ir::Max(from * int64_t{2}, ir::Int64(1)));
      PrimExpr& dim = sizes.dims[static_cast<size_t>(axis)];
      const bool is_least = policy == "not_larger";
      dim = op::SimplifyDim(j == 0 ? rounded : is_least ? ir::Min(dim, rounded) : ir::Max(dim, rounded));
    }
  }
  std::vector<PrimExpr> resized;
  for (const int64_t axis : sizes.axes) resized.push_back(sizes.dims[static_cast<size_t>(axis)]);
  INGOT_ASSIGN_OR_RETURN(const Expr values, node.Bind("shape_to_tensor", {ShapeOf(std::move(resized))}));
  INGOT_ASSIGN_OR_RETURN(resized, node.NameElements(values));
  for (size_t i = 0; i < resized.size(); ++i) sizes.dims[static_cast<size_t>(sizes.axes[i])] = resized[i];
  return sizes;
}

Result<Sizes> SizesFromLengths(const NodeImporter& node, std::vector<int64_t> axes) {
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> dims, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> lengths, node.DataInts(3, "sizes", std::ssize(axes)));
  if (lengths.size() != axes.size()) {
    return node.Invalid("expected " + std::to_string(axes.size()) + " sizes, got " + std::to_string(lengths.size()));
  }
  INGOT_ASSIGN_OR_RETURN(const std::string policy, node.String("keep_aspect_ratio_policy", "stretch"));
  if (policy == "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) dims[static_cast<size_t>(axes[i])] = lengths[i];
    return Sizes{std::move(axes), {}, std::move(dims)};
  }
  if (policy != "not_larger" && policy != "not_smaller") {
    return node.Invalid("keep_aspect_ratio_policy is \"" + policy + "\"");
  }
  const auto length_of = [&](int64_t axis) { return ir::AsConstInt(dims[static_cast<size_t>(axis)]); };
  const bool is_constant = std::ranges::all_of(axes, [&](int64_t axis) { return length_of(axis).has_value(); }) &&
                           std::ranges::all_of(lengths, IsNumber);
  // One scale for all axes; lengths are rounded, halves up.
  if (!is_constant) return KeepRatio(node, std::move(axes), lengths, std::move(dims), policy);
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t in = *length_of(axes[i]);
    if (in < 1) return node.Invalid("a dimension of " + std::to_string(in) + " elements");
    const double own = static_cast<double>(*ir::AsConstInt(lengths[i])) / static_cast<double>(in);
    const bool replaces = i == 0 || (policy == "not_larger" ? own < scale : own > scale);
    if (replaces) scale = own;
  }
  for (int64_t axis : axes) {
    PrimExpr& dim = dims[static_cast<size_t>(axis)];
    const double length = std::floor(static_cast<double>(*ir::AsConstInt(dim)) * scale + 0.5);
    if (!(length >= 0 && length <= kMaxLength)) return node.Invalid("a dimension resized to " + std::to_string(length));
    dim = ir::Int64(static_cast<int64_t>(length));
  }
  const std::vector<double> scales(axes.size(), scale);
  return Sizes{std::move(axes), scales, std::move(dims)};
}

// Returns the operator's name of an interpolation mode.
Result<std::string> Method(const NodeImporter& node, const char* default_mode) {
  INGOT_ASSIGN_OR_RETURN(const std::string mode, node.String("mode", default_mode));
  if (mode == "bilinear") return std::string("linear");
  if (mode == "bicubic") return std::string("cubic");
  if (mode == "nearest" || mode == "linear" || mode == "cubic") return mode;
  return node.Invalid("mode is \"" + mode + "\"");
}

Outputs ResizeTo(const NodeImporter& node, Sizes sizes, ir::Attrs attrs) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  attrs = attrs.With("axes", AttrValue::Ints(sizes.axes));
  if (!sizes.scales.empty()) attrs = attrs.With("scales", Floats(sizes.scales));
  std::vector<Expr> args = {x, ShapeOf(std::move(sizes.dims))};
  if (!sizes.ratios.empty()) {
    args.push_back(ShapeOf(std::move(sizes.ratios)));
    attrs = attrs.With("policy", sizes.policy);
  }
  if (sizes.scale_tensor != nullptr) args.push_back(sizes.scale_tensor);
  return One(node.Call("image.resize", std::move(args), attrs));
}

// Until opset 10 coordinates are those of the asymmetric mode, and nearest rounds down, or up where the scale is less
// than 1, as in ONNX's own case of opset 10 (test_resize_downsample_nearest) and in ONNX Runtime.
Outputs ResizeByScales(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < in.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  std::optional<Sizes> sizes;
  if (const OnnxAttribute* attribute = node.FindAttr("scales")) {  // Upsample until opset 8
    const auto* values = std::get_if<std::vector<float>>(&attribute->value);
    if (values == nullptr) return node.Invalid("attribute \"scales\": expected floats");
    INGOT_ASSIGN_OR_RETURN(sizes, SizesFromScales(node, std::move(axes), {values->begin(), values->end()}));
  } else {
    INGOT_ASSIGN_OR_RETURN(sizes, SizesFromInput(node, 1, axes));
  }
  if (!sizes) return node.Invalid("there are no scales");
  INGOT_ASSIGN_OR_RETURN(const std::string method, Method(node, "nearest"));
  return ResizeTo(
      node, *std::move(sizes),
      {{"method", method}, {"coordinate_transformation_mode", "asymmetric"}, {"rounding_method", "by_scale"}});
}

// Whether the kernel is stretched, which only matters if the result is smaller, or its integers are rounded.
Result<bool> IsAntialiased(const NodeImporter& node, const Sizes& sizes, const std::string& method) {
  INGOT_ASSIGN_OR_RETURN(const int64_t antialias, node.Int("antialias", 0));
  if (antialias == 0 || method == "nearest") return false;
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (!type->dtype->is_floating()) return true;
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  return std::ranges::any_of(sizes.axes, [&](int64_t axis) {
    const auto from = ir::AsConstInt(in[static_cast<size_t>(axis)]);
    const auto to = ir::AsConstInt(sizes.dims[static_cast<size_t>(axis)]);
    return !from || !to || *to < *from;
  });
}

// Scales that data give, as whole numbers of the parts of which antialias has so many in a scale of 1.
Result<std::vector<PrimExpr>> PartsOfScales(const NodeImporter& node, const Expr& scales) {
  const DataType wide = DataType::Float(64);
  INGOT_ASSIGN_OR_RETURN(Expr parts, CastTo(node, scales, wide));
  INGOT_ASSIGN_OR_RETURN(const Expr whole, node.Scalar(static_cast<double>(kPartsOfScale), wide));
  INGOT_ASSIGN_OR_RETURN(parts, node.Bind("multiply", {parts, whole}));
  INGOT_ASSIGN_OR_RETURN(parts, node.Bind("round", {parts}));
  INGOT_ASSIGN_OR_RETURN(parts, CastTo(node, std::move(parts), DataType::Int(64)));
  return node.NameLengths(std::move(parts));
}

Outputs Resize(const NodeImporter& node) {
  if (node.opset() < 11) return ResizeByScales(node);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  const auto rank = static_cast<int64_t>(in.size());
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  INGOT_ASSIGN_OR_RETURN(axes, node.Ints("axes", axes));
  for (int64_t& axis : axes) {
    INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, rank));
  }
  INGOT_ASSIGN_OR_RETURN(std::optional<Sizes> by_scales, SizesFromInput(node, 2, axes));
  Sizes sizes;
  if (by_scales) {
    sizes = *std::move(by_scales);
  } else {
    INGOT_ASSIGN_OR_RETURN(sizes, SizesFromLengths(node, axes));
  }
  INGOT_ASSIGN_OR_RETURN(const std::string method, Method(node, "nearest"));
  INGOT_ASSIGN_OR_RETURN(const std::string places, node.String("coordinate_transformation_mode", "half_pixel"));
  INGOT_ASSIGN_OR_RETURN(const std::string rounding, node.String("nearest_mode", "round_prefer_floor"));
  INGOT_ASSIGN_OR_RETURN(const double alpha, node.Float("cubic_coeff_a", -0.75));
  INGOT_ASSIGN_OR_RETURN(const int64_t exclude, node.Int("exclude_outside", 0));
  INGOT_ASSIGN_OR_RETURN(const double outside, node.Float("extrapolation_value", 0));
  INGOT_ASSIGN_OR_RETURN(const bool antialiased, IsAntialiased(node, sizes, method));
  if (antialiased) {
    AntialiasOptions options{method, places, alpha, exclude != 0, sizes.ratios, sizes.policy};
    if (sizes.scale_tensor != nullptr) {
      INGOT_ASSIGN_OR_RETURN(options.parts, PartsOfScales(node, sizes.scale_tensor));
    }
    return One(ResizeAntialiased(node, sizes.axes, sizes.scales, sizes.dims, options));
  }
  ir::Attrs attrs = {{"method", method},
                     {"coordinate_transformation_mode", places},
                     {"rounding_method", rounding},
                     {"cubic_alpha", alpha},
                     {"cubic_exclude", exclude != 0},
                     {"extrapolation_value", outside}};
  if (places == "tf_crop_and_resize") {
    if (node.HasInput(1) && !node.IsConstant(1)) {
      INGOT_ASSIGN_OR_RETURN(const Expr region, node.Input(1));
      INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, 1));
      if (own.size() != 1) return node.Invalid("expected a region of rank 1");
      return One(
          ResizeRegion(node, sizes.axes, sizes.dims, region, axes, {method, rounding, alpha, exclude != 0, outside}));
    }
    INGOT_ASSIGN_OR_RETURN(const std::vector<double> roi, ConstantNumbers(node, 1, "roi"));
    attrs = attrs.With("roi", Floats(roi));
  }
  return ResizeTo(node, std::move(sizes), attrs);
}

Outputs GridSample(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr grid, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::string method, Method(node, "linear"));
  INGOT_ASSIGN_OR_RETURN(const std::string padding, node.String("padding_mode", "zeros"));
  INGOT_ASSIGN_OR_RETURN(const int64_t align_corners, node.Int("align_corners", 0));
  return One(node.Call("image.grid_sample", {x, grid},
                       {{"method", method}, {"padding_mode", padding}, {"align_corners", align_corners != 0}}));
}

// The coordinates of `length` places along an axis from -1 to 1, of these dims.
Result<Expr> PlacesBetween(const NodeImporter& node, const PrimExpr& length, bool align_corners, DataType dtype,
                           std::vector<PrimExpr> dims) {
  const DataType wide = DataType::Float(64);
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Bind("arange", {Number(ir::Int64(0)), Number(length), Number(ir::Int64(1))},
                                           {{"dtype", DataType::Int(64)}}));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, wide));
  // x * 2 / (length - 1) - 1, or (2 * x + 1) / length - 1; a single aligned place is at -1.
  const PrimExpr steps = align_corners ? op::SimplifyDim(ir::Max(length - 1, ir::Int64(1))) : length;
  INGOT_ASSIGN_OR_RETURN(Expr count, node.Bind("shape_to_tensor", {ShapeOf({steps})}));
  INGOT_ASSIGN_OR_RETURN(count, CastTo(node, count, wide));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, wide));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, x}));
  if (!align_corners) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("add", {x, one}));
  }
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("divide", {x, count}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("subtract", {x, one}));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, dtype));
  return node.Bind("reshape", {x, ShapeOf(std::move(dims))});
}

// The grid of a size that only run time knows: a sum of the columns of theta, each times the places along its axis.
Outputs AffineGridOf(const NodeImporter& node, const std::vector<PrimExpr>& size) {
  INGOT_ASSIGN_OR_RETURN(Expr theta, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t align_corners, node.Int("align_corners", 0));
  const DataType dtype = DTypeOf(theta);
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  theta = WithDims(node, std::move(theta), {size[0], ir::Int64(rank), ir::Int64(rank + 1)});
  const auto numbers = [](int64_t value) { return TupleOf({Number(ir::Int64(value))}); };
  Expr sum;
  for (int64_t column = rank; column >= 0; --column) {
    INGOT_ASSIGN_OR_RETURN(Expr term,
                           node.Bind("strided_slice", {theta, numbers(2), numbers(column), numbers(column + 1)}));
    std::vector<PrimExpr> dims(size.size(), ir::Int64(1));
    dims.front() = size[0];
    dims.back() = ir::Int64(rank);
    INGOT_ASSIGN_OR_RETURN(term, node.Bind("reshape", {term, ShapeOf(dims)}));
    if (column < rank) {
      const auto axis = static_cast<size_t>(rank - column);  // the first column belongs to the last axis
      std::vector<PrimExpr> along(size.size(), ir::Int64(1));
      along[axis] = size[axis + 1];
      INGOT_ASSIGN_OR_RETURN(const Expr places,
                             PlacesBetween(node, size[axis + 1], align_corners != 0, dtype, std::move(along)));
      INGOT_ASSIGN_OR_RETURN(term, node.Bind("multiply", {term, places}));
    }
    if (sum == nullptr) {
      sum = term;
    } else {
      INGOT_ASSIGN_OR_RETURN(sum, node.Bind("add", {sum, term}));
    }
  }
  return One(std::move(sum));
}

// The points of the unmoved grid as rows (x, y, 1) or (x, y, z, 1), multiplied by theta. The grid is a constant.
Outputs AffineGrid(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> lengths, node.DataInts(1, "the size"));
  if (lengths.size() != 4 && lengths.size() != 5) return node.Invalid("expected a size of 4 or 5 numbers");
  const bool is_constant = std::ranges::all_of(lengths, IsNumber);
  if (!is_constant) return AffineGridOf(node, lengths);
  constexpr int64_t kMaxPlaces = int64_t{1} << 24;
  INGOT_ASSIGN_OR_RETURN(Expr theta, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> size, node.ConstantInts(1, "the size"));
  INGOT_ASSIGN_OR_RETURN(const int64_t align_corners, node.Int("align_corners", 0));
  const std::vector<int64_t> spatial(size.begin() + 2, size.end());
  int64_t places = 1;
  for (int64_t length : spatial) {
    if (length < 1 || length > kMaxPlaces / places) return node.Unsupported("a grid of this size");
    places *= length;
  }
  const size_t columns = spatial.size() + 1;
  std::vector<float> base(static_cast<size_t>(places) * columns, 1.0f);
  for (int64_t place = 0; place < places; ++place) {
    int64_t rest = place;
    for (size_t axis = spatial.size(); axis-- > 0;) {
      const auto at = static_cast<double>(rest % spatial[axis]);
      rest /= spatial[axis];
      const auto length = static_cast<double>(spatial[axis]);
      double normal = (2 * at + 1) / length - 1;
      if (align_corners != 0) normal = spatial[axis] > 1 ? 2 * at / (length - 1) - 1 : -1;
      base[static_cast<size_t>(place) * columns + spatial.size() - 1 - axis] = static_cast<float>(normal);
    }
  }
  std::vector<std::byte> bytes(base.size() * sizeof(float));
  std::memcpy(bytes.data(), base.data(), bytes.size());
  Expr grid = ir::Make<ir::ConstantNode>(
      ir::ConstantData::FromBytes(DataType::Float(32), {places, static_cast<int64_t>(columns)}, std::move(bytes)));
  if (*type->dtype != DataType::Float(32)) {
    INGOT_ASSIGN_OR_RETURN(grid, node.Bind("astype", {grid}, {{"dtype", *type->dtype}}));
  }
  const auto rows = static_cast<int64_t>(spatial.size());
  theta = WithDims(node, std::move(theta), {ir::Int64(size[0]), ir::Int64(rows), ir::Int64(rows + 1)});
  INGOT_ASSIGN_OR_RETURN(theta, node.Bind("permute_dims", {theta}, {{"axes", AttrValue::Ints({0, 2, 1})}}));
  INGOT_ASSIGN_OR_RETURN(Expr moved, node.Bind("matmul", {grid, theta}));
  std::vector<PrimExpr> dims = {ir::Int64(size[0])};
  for (int64_t length : spatial) dims.push_back(ir::Int64(length));
  dims.push_back(ir::Int64(static_cast<int64_t>(spatial.size())));
  return One(ReshapeTo(node, std::move(moved), std::move(dims)));
}

constexpr OnnxOpRow kResizeRows[] = {
    {"AffineGrid", nullptr, AffineGrid},
    {"GridSample", nullptr, GridSample},
    {"Resize", nullptr, Resize},
    {"Upsample", nullptr, ResizeByScales},
};

}  // namespace

std::span<const OnnxOpRow> ResizeOnnxOps() { return kResizeRows; }

}  // namespace ingot::importer
