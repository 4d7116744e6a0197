// Operators that move elements to other places: slices, parts, gathers and scatters, padding, order, ranges.
#include "compiler/importer/ops/families.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"
#include "runtime/tensor.h"

namespace ingot::importer {
namespace {

Result<int64_t> AxisOf(const NodeImporter& node, const char* name, int64_t default_value, size_t input = 0) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, input));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, node.Int(name, default_value));
  return NormaliseAxis(node, axis, static_cast<int64_t>(in.size()));
}

// ---- parts

// The starts or ends of a slice. Data-dependent ones are clamped to [0, axis length], for steps of 1.
Result<std::vector<PrimExpr>> SliceBounds(const NodeImporter& node, size_t input, const char* what,
                                          const std::vector<PrimExpr>& in) {
  if (!node.HasInput(input) || node.MayBeKnown(input)) return node.SymbolicInts(input, what);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  const std::optional<int64_t> count = own.size() == 1 ? ir::AsConstInt(own[0]) : std::nullopt;
  if (!count || *count > std::ssize(in)) return node.Unsupported(std::string(what) + " are not constants");
  std::vector<int64_t> axes(static_cast<size_t>(*count)), steps(axes.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(axes, node.ConstantInts(3, "the axes"));
  }
  if (node.HasInput(4)) {
    INGOT_ASSIGN_OR_RETURN(steps, node.ConstantInts(4, "the steps"));
  }
  if (std::ranges::any_of(steps, [](int64_t step) { return step != 1; })) {
    return node.Unsupported("a step that is not 1, from bounds that depend on data");
  }
  std::vector<PrimExpr> extents;
  for (int64_t axis : axes) {
    INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size())));
    extents.push_back(in[static_cast<size_t>(axis)]);
  }
  if (extents.size() != axes.size() || std::ssize(extents) != *count)
    return node.Invalid("expected one axis per bound");
  const DataType index = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(Expr bounds, node.Input(input));
  if (ir::As<ir::TensorTypeNode>(bounds->type)->dtype != index) {
    INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("astype", {bounds}, {{"dtype", index}}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, index));
  INGOT_ASSIGN_OR_RETURN(const Expr lengths, node.Bind("shape_to_tensor", {ShapeOf(std::move(extents))}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_negative, node.Bind("less", {bounds, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr from_end, node.Bind("add", {bounds, lengths}));
  INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("where", {is_negative, from_end, bounds}));
  INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("maximum", {bounds, zero}));
  INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("minimum", {bounds, lengths}));
  return node.NameElements(bounds);
}

// A walk backwards whose start is before the first element begins at the first element: ONNX clamps such a start to 0,
// where NumPy (and R.strided_slice) selects nothing.
PrimExpr NotBelowFirst(const PrimExpr& start, const PrimExpr& extent) {
  const PrimExpr zero = ir::Int64(0);
  arith::Analyzer analyzer;
  if (analyzer.ProveLessEqual(zero, start)) return start;
  const PrimExpr from_end = ir::Max(start + extent, zero);
  if (analyzer.ProveLess(start, zero)) return op::SimplifyDim(from_end);
  return op::SimplifyDim(ir::Select(start < zero, from_end, start));
}

// Bounds are attributes until opset 9 and inputs from 10 on; they may be symbols, or data-dependent.
Outputs Slice(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  std::vector<PrimExpr> starts, ends;
  std::vector<int64_t> axes;
  if (node.num_inputs() > 1) {
    INGOT_ASSIGN_OR_RETURN(starts, SliceBounds(node, 1, "the starts", in));
    INGOT_ASSIGN_OR_RETURN(ends, SliceBounds(node, 2, "the ends", in));
  } else {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given_starts, node.Ints("starts", {}));
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given_ends, node.Ints("ends", {}));
    for (int64_t start : given_starts) starts.push_back(ir::Int64(start));
    for (int64_t end : given_ends) ends.push_back(ir::Int64(end));
  }
  if (starts.size() != ends.size()) return node.Invalid("as many starts as ends are expected");
  std::vector<int64_t> every(starts.size()), steps(starts.size(), 1);
  std::iota(every.begin(), every.end(), 0);
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(axes, node.ConstantInts(3, "the axes"));
  } else {
    INGOT_ASSIGN_OR_RETURN(axes, node.Ints("axes", every));
  }
  if (node.HasInput(4)) {
    INGOT_ASSIGN_OR_RETURN(steps, node.ConstantInts(4, "the steps"));
  }
  if (axes.size() != starts.size() || steps.size() != starts.size()) {
    return node.Invalid("as many axes and steps as starts are expected");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(axes[i], NormaliseAxis(node, axes[i], static_cast<int64_t>(in.size())));
    if (steps[i] == 0) return node.Invalid("a step is 0");
    steps[i] = std::max(steps[i], -std::numeric_limits<int64_t>::max());
    if (steps[i] < 0) starts[i] = NotBelowFirst(starts[i], in[static_cast<size_t>(axes[i])]);
  }
  return One(node.Call("strided_slice", {x, PrimTuple(axes), PrimTuple(starts), PrimTuple(ends), PrimTuple(steps)}));
}

// Returns x with this length of the axis; the length is checked at run time.
Result<Expr> WithDim(const NodeImporter& node, const Expr& x, size_t axis, int64_t length) {
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  std::vector<PrimExpr> dims = *type->dims;
  dims[axis] = ir::Int64(length);
  return node.Match(x, ir::Make<ir::TensorTypeNode>(std::move(dims), type->dtype));
}

// The lengths are an attribute until opset 12 and an input from 13 on; without them the parts are equal, and the last
// one may be shorter.
Outputs Split(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", 0));
  std::vector<int64_t> lengths;
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(lengths, node.ConstantInts(1, "the lengths of the parts"));
  } else {
    INGOT_ASSIGN_OR_RETURN(lengths, node.Ints("split", {}));
  }
  const size_t parts = node.node().outputs.size();
  if (lengths.empty()) {
    if (parts == 1) return std::vector<Expr>{std::move(x)};
    return Fields(node.Bind("split", {x}, {{"indices_or_sections", static_cast<int64_t>(parts)}, {"axis", axis}}));
  }
  if (lengths.size() != parts) {
    return node.Invalid(std::to_string(lengths.size()) + " lengths for " + std::to_string(parts) + " outputs");
  }
  int64_t end = 0;
  ir::AttrList places;
  for (int64_t length : lengths) {
    if (length < 0 || length > std::numeric_limits<int64_t>::max() - end) {
      return node.Invalid("a part of length " + std::to_string(length));
    }
    end += length;
    places.emplace_back(end);
  }
  const PrimExpr& extent = in[static_cast<size_t>(axis)];
  if (op::DimsDiffer(extent, ir::Int64(end))) {
    return node.Invalid("the parts' lengths do not add up to " + op::Describe(extent));
  }
  if (!ir::AsConstInt(extent)) {
    INGOT_ASSIGN_OR_RETURN(x, WithDim(node, x, static_cast<size_t>(axis), end));
  }
  if (parts == 1) return std::vector<Expr>{std::move(x)};
  places.pop_back();
  return Fields(node.Bind("split", {x}, {{"indices_or_sections", std::move(places)}, {"axis", axis}}));
}

Outputs Tile(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> repeats, node.DataInts(1, "the repeats"));
  if (repeats.size() != in.size()) return node.Invalid("expected one repeat per dimension");
  std::vector<int64_t> constants;
  for (const PrimExpr& repeat : repeats) {
    const auto constant = ir::AsConstInt(repeat);
    if (constant && *constant < 0) return node.Invalid("a repeat is " + std::to_string(*constant));
    if (constant) constants.push_back(*constant);
  }
  if (constants.size() == repeats.size()) {
    return One(node.Call("tile", {x}, {{"repeats", AttrValue::Ints(constants)}}));
  }
  // Symbolic repeats: each dimension gets a new dimension before it, along which it is broadcast.
  std::vector<PrimExpr> apart, repeated, joined;
  for (size_t i = 0; i < in.size(); ++i) {
    apart.insert(apart.end(), {ir::Int64(1), in[i]});
    repeated.insert(repeated.end(), {repeats[i], in[i]});
    joined.push_back(op::SimplifyDim(repeats[i] * in[i]));
  }
  if (static_cast<int64_t>(repeated.size()) > kMaxRank)
    return node.Unsupported("repeats that are symbols of so many dimensions");
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf(std::move(apart))}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("broadcast_to", {x, ShapeOf(std::move(repeated))}));
  return One(ReshapeTo(node, std::move(x), std::move(joined)));
}

// ---- padding

struct Padding {
  std::vector<int64_t> before, after;  // per dimension; negative: cut off
};
Result<Padding> ReadPadding(const NodeImporter& node, size_t rank) {
  std::vector<int64_t> pads;
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(pads, node.ConstantInts(1, "the padding"));
  } else {
    INGOT_ASSIGN_OR_RETURN(pads, node.Ints("pads", {}));
  }
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(axes, node.ConstantInts(3, "the axes"));
  }
  if (pads.size() != 2 * axes.size()) return node.Invalid("expected two figures of padding per axis");
  Padding padding{std::vector<int64_t>(rank), std::vector<int64_t>(rank)};
  constexpr int64_t kMost = int64_t{1} << 40;
  for (size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t axis, NormaliseAxis(node, axes[i], static_cast<int64_t>(rank)));
    padding.before[static_cast<size_t>(axis)] = pads[i];
    padding.after[static_cast<size_t>(axis)] = pads[i + axes.size()];
  }
  for (int64_t pad : pads) {
    if (pad < -kMost || pad > kMost) return node.Invalid("a padding of " + std::to_string(pad));
  }
  return padding;
}

// Cuts off where the padding is negative, then pads.
Outputs PadBy(const NodeImporter& node, Expr x, const Padding& padding, const std::string& mode, double value) {
  std::vector<int64_t> axes, starts, ends, steps, widths;
  for (size_t i = 0; i < padding.before.size(); ++i) {
    const int64_t before = padding.before[i], after = padding.after[i];
    widths.push_back(std::max<int64_t>(before, 0));
    widths.push_back(std::max<int64_t>(after, 0));
    if (before >= 0 && after >= 0) continue;
    axes.push_back(static_cast<int64_t>(i));
    starts.push_back(std::max<int64_t>(-before, 0));
    ends.push_back(after < 0 ? after : std::numeric_limits<int64_t>::max());
    steps.push_back(1);
  }
  const bool pads = std::ranges::any_of(widths, [](int64_t width) { return width != 0; });
  if (!axes.empty()) {
    INGOT_ASSIGN_OR_RETURN(
        x, node.Bind("strided_slice", {x, PrimTuple(axes), PrimTuple(starts), PrimTuple(ends), PrimTuple(steps)}));
  }
  if (!pads) return std::vector<Expr>{std::move(x)};
  return One(
      node.Call("nn.pad", {x}, {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", value}, {"pad_mode", mode}}));
}

Outputs Pad(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(node, in.size()));
  INGOT_ASSIGN_OR_RETURN(std::string mode, node.String("mode", "constant"));
  INGOT_ASSIGN_OR_RETURN(double value, node.Float("value", 0));
  const bool value_is_data = node.HasInput(2) && !node.MayBeKnown(2) && mode == "constant";
  if (!value_is_data) {
    INGOT_ASSIGN_OR_RETURN(value, node.ConstantNumber(2, "the value of the padding", value));
  }
  if (mode == "edge")
    mode = "replicate";
  else if (mode == "wrap")
    mode = "circular";
  else if (mode != "constant" && mode != "reflect")
    return node.Invalid("mode is \"" + mode + "\"");
  if (!value_is_data) return PadBy(node, x, padding, mode, value);
  // A tensor of ones, padded with zeros in the same way, tells where the value belongs.
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> padded, PadBy(node, x, padding, mode, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr ones, node.Bind("ones", {ShapeOf(in)}, {{"dtype", DataType::Int(8)}}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> inside, PadBy(node, ones, padding, mode, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr is_inside,
                         node.Bind("astype", {node.BindValue(inside[0], "inside")}, {{"dtype", DataType::Bool()}}));
  INGOT_ASSIGN_OR_RETURN(Expr given, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(given, node.Bind("reshape", {given, ShapeOf({})}));
  if (ir::As<ir::TensorTypeNode>(given->type)->dtype != type->dtype) return node.Invalid("the value has another dtype");
  return One(node.Call("where", {is_inside, node.BindValue(padded[0], "padded"), given}));
}

// Crops the middle of an axis that is too long, and pads an axis that is too short on both sides.
Outputs CenterCropPad(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, node.ConstantInts(1, "the shape"));
  std::vector<int64_t> axes(in.size());
  std::iota(axes.begin(), axes.end(), 0);
  INGOT_ASSIGN_OR_RETURN(axes, node.Ints("axes", std::move(axes)));
  if (axes.size() != shape.size()) return node.Invalid("expected one target per axis");
  Padding padding{std::vector<int64_t>(in.size()), std::vector<int64_t>(in.size())};
  std::vector<std::pair<size_t, int64_t>> cuts;  // axes of symbolic length, and their new lengths
  for (size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t axis, NormaliseAxis(node, axes[i], static_cast<int64_t>(in.size())));
    const auto extent = ir::AsConstInt(in[static_cast<size_t>(axis)]);
    constexpr int64_t kMost = int64_t{1} << 40;
    if (shape[i] < 0 || shape[i] > kMost) return node.Invalid("the shape holds " + std::to_string(shape[i]));
    if (!extent) {
      // Pads both sides by the largest number of zeros that may be needed; the surplus is cut off.
      padding.before[static_cast<size_t>(axis)] = padding.after[static_cast<size_t>(axis)] = (shape[i] + 1) / 2;
      cuts.emplace_back(static_cast<size_t>(axis), shape[i]);
      continue;
    }
    const int64_t size = shape[i] < *extent ? *extent - shape[i] : shape[i] - *extent;
    const int64_t sign = shape[i] < *extent ? -1 : 1;
    padding.before[static_cast<size_t>(axis)] = sign * (size / 2);
    padding.after[static_cast<size_t>(axis)] = sign * (size - size / 2);
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> padded, PadBy(node, x, padding, "constant", 0));
  if (cuts.empty()) return padded;
  std::vector<PrimExpr> cut_axes, begin, end;
  for (const auto& [axis, length] : cuts) {
    const PrimExpr zero = ir::Int64(0), two = ir::Int64(2), target = ir::Int64(length);
    const PrimExpr cropped = ir::FloorDiv(ir::Max(in[axis] - target, zero), two);
    const PrimExpr missing = ir::FloorDiv(ir::Max(target - in[axis], zero), two);
    cut_axes.push_back(ir::Int64(static_cast<int64_t>(axis)));
    begin.push_back(op::SimplifyDim(cropped - missing + padding.before[axis]));
    end.push_back(op::SimplifyDim(begin.back() + target));
  }
  Expr y = node.BindValue(padded[0], "padded");
  INGOT_ASSIGN_OR_RETURN(y, node.Bind("strided_slice", {y, PrimTuple(cut_axes), PrimTuple(begin), PrimTuple(end)}));
  for (const auto& [axis, length] : cuts) {
    INGOT_ASSIGN_OR_RETURN(y, WithDim(node, y, axis, length));
  }
  return std::vector<Expr>{std::move(y)};
}

// ---- gathers and scatters

Outputs Gather(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", 0));
  return One(node.Call("take", {x, indices}, {{"axis", axis}}));
}

Outputs GatherElements(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", 0));
  return One(node.Call("gather_elements", {x, indices}, {{"axis", axis}}));
}

Outputs GatherNd(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const int64_t batch, node.Int("batch_dims", 0));
  return One(node.Call("gather_nd", {x, indices}, {{"batch_dims", batch}}));
}

Result<std::string> Reduction(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::string reduction, node.String("reduction", "none"));
  return reduction == "none" ? std::string("update") : reduction;
}

Outputs ScatterElements(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(Expr updates, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", 0));
  INGOT_ASSIGN_OR_RETURN(const std::string reduction, Reduction(node));
  return One(node.Call("scatter_elements", {x, indices, updates}, {{"axis", axis}, {"reduction", reduction}}));
}

Outputs ScatterNd(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(Expr updates, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(const std::string reduction, Reduction(node));
  return One(node.Call("scatter_nd", {x, indices, updates}, {{"reduction", reduction}}));
}

// Returns a constant of one integer, as a tensor of the dtype.
Result<Expr> IntConstant(const NodeImporter& node, int64_t value, DataType dtype) {
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  const Expr constant =
      ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(DataType::Int(64), {}, std::move(bytes)));
  if (dtype == DataType::Int(64)) return constant;
  return node.Bind("astype", {constant}, {{"dtype", dtype}});
}

// Returns the depth of OneHot: a number of any dtype, which may be data-dependent.
Result<PrimExpr> DepthOf(const NodeImporter& node) {
  constexpr double kMaxDepth = 1e12;
  if (!node.HasInput(1) || node.MayBeKnown(1)) {
    INGOT_ASSIGN_OR_RETURN(const double depth, node.ConstantNumber(1, "the depth", 0));
    if (!(depth >= 0 && depth <= kMaxDepth)) return node.Invalid("the depth is no length");
    return ir::Int64(static_cast<int64_t>(depth));
  }
  INGOT_ASSIGN_OR_RETURN(Expr depth, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(1));
  if (*type->dtype != DataType::Int(64)) {
    INGOT_ASSIGN_OR_RETURN(depth, node.Bind("astype", {depth}, {{"dtype", DataType::Int(64)}}));
  }
  INGOT_ASSIGN_OR_RETURN(depth, node.Bind("reshape", {depth, ShapeOf({ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> size, node.NameElements(depth));
  return size[0];
}

// `values` holds the value elsewhere and the value at the index; negative indices count from the end.
Outputs OneHot(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(Expr values, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", -1));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size()) + 1));
  const DataType i64 = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(const PrimExpr depth, DepthOf(node));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (*type->dtype != i64) {
    INGOT_ASSIGN_OR_RETURN(indices, node.Bind("astype", {indices}, {{"dtype", i64}}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr zero, IntConstant(node, 0, i64));
  INGOT_ASSIGN_OR_RETURN(Expr length, node.Bind("shape_to_tensor", {ShapeOf({depth})}));
  INGOT_ASSIGN_OR_RETURN(length, node.Bind("reshape", {length, ShapeOf({})}));
  INGOT_ASSIGN_OR_RETURN(Expr is_negative, node.Bind("less", {indices, zero}));
  INGOT_ASSIGN_OR_RETURN(Expr from_end, node.Bind("add", {indices, length}));
  INGOT_ASSIGN_OR_RETURN(indices, node.Bind("where", {is_negative, from_end, indices}));
  // The positions along the new axis are compared with the index.
  INGOT_ASSIGN_OR_RETURN(
      Expr places, node.Bind("arange", {Number(ir::Int64(0)), Number(depth), Number(ir::Int64(1))}, {{"dtype", i64}}));
  std::vector<PrimExpr> along(in.size() + 1, ir::Int64(1)), apart = in;
  along[static_cast<size_t>(axis)] = depth;
  apart.insert(apart.begin() + axis, ir::Int64(1));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("reshape", {places, ShapeOf(along)}));
  INGOT_ASSIGN_OR_RETURN(indices, node.Bind("reshape", {indices, ShapeOf(apart)}));
  INGOT_ASSIGN_OR_RETURN(const Expr hot, node.Bind("equal", {indices, places}));
  std::vector<Expr> chosen;  // the value elsewhere, the value at the index
  for (int64_t i : {0, 1}) {
    const std::vector<int64_t> at = {i}, next = {i + 1}, first = {0};
    INGOT_ASSIGN_OR_RETURN(Expr value,
                           node.Bind("strided_slice", {values, PrimTuple(first), PrimTuple(at), PrimTuple(next)}));
    INGOT_ASSIGN_OR_RETURN(value, node.Bind("reshape", {value, ShapeOf({})}));
    chosen.push_back(std::move(value));
  }
  return One(node.Call("where", {hot, chosen[1], chosen[0]}));
}

Outputs ReverseSequence(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(Expr lengths, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const int64_t batch, AxisOf(node, "batch_axis", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t time, AxisOf(node, "time_axis", 0));
  return One(node.Call("reverse_sequence", {x, lengths}, {{"seq_axis", time}, {"batch_axis", batch}}));
}

// ---- order

// Returns the first k elements of an axis in sorted order, and their places.
Outputs SortedTo(const NodeImporter& node, const Expr& x, int64_t axis, bool largest, int64_t k) {
  return Fields(
      node.Bind("topk", {x},
                {{"k", k}, {"axis", axis}, {"ret_type", "both"}, {"largest", largest}, {"dtype", DataType::Int(64)}}));
}

// k is an attribute until opset 9 and an input from 10 on; for a data-dependent k, a part of the whole order is taken.
Outputs TopK(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", -1));
  INGOT_ASSIGN_OR_RETURN(const int64_t largest, node.Int("largest", 1));
  int64_t k = 0;
  if (node.HasInput(1) && !node.MayBeKnown(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
    const auto extent = ir::AsConstInt(in[static_cast<size_t>(axis)]);
    if (!extent) return node.Unsupported("k depends on data, and the axis is symbolic");
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.DataInts(1, "k"));
    if (given.size() != 1) return node.Invalid("k: expected one number");
    INGOT_ASSIGN_OR_RETURN(std::vector<Expr> whole, SortedTo(node, x, axis, largest != 0, *extent));
    for (Expr& part : whole) {
      const std::vector<PrimExpr> begin = {ir::Int64(0)}, end = {given[0]};
      const std::vector<int64_t> axes = {axis}, step = {1};
      part = node.BindValue(part, "sorted");
      INGOT_ASSIGN_OR_RETURN(
          part, node.Bind("strided_slice", {part, PrimTuple(axes), PrimTuple(begin), PrimTuple(end), PrimTuple(step)}));
    }
    return whole;
  }
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.ConstantInts(1, "k"));
    if (given.size() != 1) return node.Invalid("k: expected one number");
    k = given[0];
  } else {
    INGOT_ASSIGN_OR_RETURN(k, node.Int("k", 0));
  }
  return SortedTo(node, x, axis, largest != 0, k);
}

template <const auto& kRow>
Outputs Arg(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t keep, node.Int("keepdims", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t last, node.Int("select_last_index", 0));
  return One(node.Call(kRow, {x},
                       {{"axis", AttrValue::Ints({axis})}, {"keepdims", keep != 0}, {"select_last_index", last != 0}}));
}
constexpr char kArgMax[] = "argmax";
constexpr char kArgMin[] = "argmin";

// Backwards: the axis is reversed before and after.
template <const auto& kRow>
Outputs Scan(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.ConstantInts(1, "the axis"));
  if (given.size() != 1) return node.Invalid("the axis: expected one number");
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, NormaliseAxis(node, given[0], static_cast<int64_t>(in.size())));
  INGOT_ASSIGN_OR_RETURN(const int64_t exclusive, node.Int("exclusive", 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t reverse, node.Int("reverse", 0));
  const ir::Attrs attrs = {{"axis", axis}, {"exclusive", exclusive != 0}};
  if (reverse == 0) return One(node.Call(kRow, {x}, attrs));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("flip", {x}, {{"axis", axis}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind(kRow, {x}, attrs));
  return One(node.Call("flip", {x}, {{"axis", axis}}));
}
constexpr char kCumSum[] = "cumsum";
constexpr char kCumProd[] = "cumprod";

Outputs Trilu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t upper, node.Int("upper", 1));
  PrimExpr k = ir::Int64(0);
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.SymbolicInts(1, "the diagonal"));
    if (given.size() != 1) return node.Invalid("the diagonal: expected one number");
    k = given[0];
  }
  return One(node.Call(upper != 0 ? "triu" : "tril", {x, Number(k)}));
}

// ---- new values

// Data-dependent ends: the number of steps between them is computed at run time.
Outputs RangeByData(const NodeImporter& node, DataType dtype) {
  std::vector<Expr> ends;
  for (size_t i : {0, 1, 2}) {
    INGOT_ASSIGN_OR_RETURN(Expr end, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(end, node.Bind("reshape", {end, ShapeOf({ir::Int64(1)})}));
    ends.push_back(std::move(end));
  }
  const DataType wide = DataType::Float(64), index = DataType::Int(64);
  std::vector<Expr> numbers;
  for (const Expr& end : ends) {
    INGOT_ASSIGN_OR_RETURN(Expr number, node.Bind("astype", {end}, {{"dtype", wide}}));
    numbers.push_back(std::move(number));
  }
  INGOT_ASSIGN_OR_RETURN(Expr count, node.Bind("subtract", {numbers[1], numbers[0]}));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("divide", {count, numbers[2]}));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("ceil", {count}));
  INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(0, wide));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("maximum", {count, none}));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("astype", {count}, {{"dtype", index}}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> size, node.NameElements(count));
  INGOT_ASSIGN_OR_RETURN(Expr steps, node.Bind("arange", {Number(ir::Int64(0)), Number(size[0]), Number(ir::Int64(1))},
                                               {{"dtype", index}}));
  // Steps of floats narrower than float32 are computed in float32.
  const DataType exact = dtype.is_floating() && dtype.bits < 32 ? DataType::Float(32) : dtype;
  const auto as = [&](Expr x, DataType to) -> Result<Expr> {
    if (ir::As<ir::TensorTypeNode>(x->type)->dtype == to) return x;
    return node.Bind("astype", {std::move(x)}, {{"dtype", to}});
  };
  INGOT_ASSIGN_OR_RETURN(steps, as(std::move(steps), exact));
  INGOT_ASSIGN_OR_RETURN(const Expr delta, as(ends[2], exact));
  INGOT_ASSIGN_OR_RETURN(const Expr start, as(ends[0], exact));
  INGOT_ASSIGN_OR_RETURN(steps, node.Bind("multiply", {steps, delta}));
  INGOT_ASSIGN_OR_RETURN(steps, node.Bind("add", {steps, start}));
  return One(as(std::move(steps), dtype));
}

// The ends may be symbols.
Outputs Range(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  std::vector<Expr> ends;
  for (size_t i = 0; i < 3; ++i) {
    const std::optional<ShapeValue> value = node.Known(i);
    if (!value.has_value()) return RangeByData(node, *type->dtype);
    if (value->elements.size() != 1) return node.Invalid("expected three numbers");
    PrimExpr end = value->elements[0];
    if (type->dtype->is_floating() && end->kind == ir::PrimKind::kIntImm) {
      end = ir::FloatImm(*type->dtype, static_cast<double>(*ir::AsConstInt(end)));
    }
    if (type->dtype->is_floating() != end->dtype.is_floating())
      return node.Unsupported("a range of fractions up to a symbol");
    ends.push_back(Number(end));
  }
  return One(node.Call("arange", std::move(ends), {{"dtype", *type->dtype}}));
}

constexpr OnnxOpRow kIndexingRows[] = {
    {"ArgMax", nullptr, Arg<kArgMax>},
    {"ArgMin", nullptr, Arg<kArgMin>},
    {"CenterCropPad", nullptr, CenterCropPad},
    {"CumProd", nullptr, Scan<kCumProd>},
    {"CumSum", nullptr, Scan<kCumSum>},
    {"Gather", nullptr, Gather},
    {"GatherElements", nullptr, GatherElements},
    {"GatherND", nullptr, GatherNd},
    {"OneHot", nullptr, OneHot},
    {"Pad", nullptr, Pad},
    {"Range", nullptr, Range},
    {"ReverseSequence", nullptr, ReverseSequence},
    {"Scatter", nullptr, ScatterElements},
    {"ScatterElements", nullptr, ScatterElements},
    {"ScatterND", nullptr, ScatterNd},
    {"Slice", nullptr, Slice},
    {"Split", nullptr, Split},
    {"Tile", nullptr, Tile},
    {"TopK", nullptr, TopK},
    {"Trilu", nullptr, Trilu},
};

}  // namespace

std::span<const OnnxOpRow> IndexingOnnxOps() { return kIndexingRows; }

}  // namespace ingot::importer
