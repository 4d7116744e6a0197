// Operators that take or repeat parts along axes: slices, splits, tiles.
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/build.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"
#include "runtime/tensor.h"

namespace ingot::importer {
namespace {

// ---- slices

// The starts (input 1) or ends (input 2) of a slice. Data-dependent ones are clamped to where a walk in the direction
// of their step can begin or end: [0, length] forwards, [0, length - 1] and [-1, length - 1] backwards.
Result<std::vector<PrimExpr>> SliceBounds(const NodeImporter& node, size_t input, const char* what,
                                          const std::vector<PrimExpr>& in) {
  if (!node.HasInput(input) || node.MayBeKnown(input)) return node.SymbolicInts(input, what);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, input));
  std::optional<int64_t> count = own.size() == 1 ? ir::AsConstInt(own[0]) : std::nullopt;
  for (size_t other = 1; own.size() == 1 && !count && other < node.num_inputs(); ++other) {  // all are as long
    const auto* type = ir::As<ir::TensorTypeNode>(node.TypeOf(other));
    if (type != nullptr && type->dims && type->rank == 1) count = ir::AsConstInt((*type->dims)[0]);
  }
  if (!count || *count > std::ssize(in)) return node.Unsupported(std::string(what) + " are not constants");
  std::vector<int64_t> axes(static_cast<size_t>(*count)), steps(axes.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(axes, node.ConstantInts(3, "the axes"));
  }
  if (node.HasInput(4)) {
    INGOT_ASSIGN_OR_RETURN(steps, node.ConstantInts(4, "the steps"));
  }
  if (std::ssize(axes) != *count || std::ssize(steps) != *count) {
    return node.Invalid("expected one axis and one step per bound");
  }
  std::vector<PrimExpr> extents;
  std::vector<int64_t> backwards, beside;  // 1: the last place is length - 1; 1: it is named by the place behind it
  for (size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t axis, NormaliseAxis(node, axes[i], std::ssize(in)));
    extents.push_back(in[static_cast<size_t>(axis)]);
    backwards.push_back(steps[i] < 0 ? 1 : 0);
    beside.push_back(steps[i] < 0 && input == 2 ? 1 : 0);
  }
  const DataType index = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(Expr bounds, node.Input(input));
  bounds = WithDims(node, std::move(bounds), {ir::Int64(*count)});
  if (ir::As<ir::TensorTypeNode>(bounds->type)->dtype != index) {
    INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("astype", {bounds}, {{"dtype", index}}));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, index));
  INGOT_ASSIGN_OR_RETURN(const Expr lengths, node.Bind("shape_to_tensor", {ShapeOf(extents)}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_negative, node.Bind("less", {bounds, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr from_end, node.Bind("add", {bounds, lengths}));
  INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("where", {is_negative, from_end, bounds}));
  Expr last = lengths;
  if (std::ranges::find(backwards, 1) != backwards.end()) {
    INGOT_ASSIGN_OR_RETURN(last, node.Bind("subtract", {lengths, ConstantOf(index, {*count}, backwards)}));
  }
  INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("minimum", {bounds, last}));
  if (std::ranges::find(beside, 1) != beside.end()) {
    INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("add", {bounds, ConstantOf(index, {*count}, beside)}));
  }
  INGOT_ASSIGN_OR_RETURN(bounds, node.Bind("maximum", {bounds, zero}));
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> named, node.NameElements(bounds));
  for (size_t i = 0; i < named.size(); ++i) {
    if (beside[i] == 0) continue;
    // The place before the first element, which -1 does not name, is -1 - length.
    const PrimExpr one = ir::Int64(1), is_before = ir::Equal(named[i], ir::Int64(0));
    named[i] = ir::Select(is_before, ir::Int64(-1) - extents[i], named[i] - one);
  }
  return named;
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

// Steps that only run time knows: each axis takes the elements at start, start + step, and so on. Starts, ends, and steps
// are clamped as ONNX does, and a step also to the length, beyond which all take one element.
Outputs SliceBySteps(const NodeImporter& node, Expr x, const std::vector<PrimExpr>& in) {
  const DataType index = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, 4));
  const std::optional<int64_t> count = own.size() == 1 ? ir::AsConstInt(own[0]) : std::nullopt;
  if (!count) return node.Unsupported("an unknown number of steps");
  std::vector<int64_t> axes(static_cast<size_t>(std::clamp<int64_t>(*count, 0, std::ssize(in))));
  std::iota(axes.begin(), axes.end(), 0);
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(axes, node.ConstantInts(3, "the axes"));
  }
  if (std::ssize(axes) != *count) return node.Invalid("as many axes and steps as starts are expected");
  std::vector<PrimExpr> extents;
  for (int64_t& axis : axes) {
    INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, std::ssize(in)));
    extents.push_back(in[static_cast<size_t>(axis)]);
  }
  if (axes.empty()) return std::vector<Expr>{std::move(x)};
  const auto numbers = [&](size_t input) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(Expr given, node.Input(input));
    return CastTo(node, WithDims(node, std::move(given), {ir::Int64(*count)}), index);
  };
  const auto bind = [&](const char* row, Expr a, Expr b) { return node.Bind(row, {std::move(a), std::move(b)}); };
  INGOT_ASSIGN_OR_RETURN(Expr start, numbers(1));
  INGOT_ASSIGN_OR_RETURN(Expr end, numbers(2));
  INGOT_ASSIGN_OR_RETURN(Expr step, numbers(4));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, index));
  INGOT_ASSIGN_OR_RETURN(const Expr one, node.Scalar(1, index));
  INGOT_ASSIGN_OR_RETURN(const Expr length, node.Bind("shape_to_tensor", {ShapeOf(extents)}));
  // Whether no step is 0 is compared when the model runs.
  INGOT_ASSIGN_OR_RETURN(const Expr stands, bind("equal", step, zero));
  INGOT_ASSIGN_OR_RETURN(Expr standing, node.Bind("astype", {stands}, {{"dtype", index}}));
  INGOT_ASSIGN_OR_RETURN(standing, node.Bind("sum", {standing}, {{"keepdims", true}}));
  INGOT_ASSIGN_OR_RETURN(const Expr counted, node.Bind("tensor_to_shape", {standing}));
  node.Match(counted, ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{ir::Int64(0)}));
  INGOT_ASSIGN_OR_RETURN(const Expr longest, bind("maximum", length, one));
  INGOT_ASSIGN_OR_RETURN(const Expr shortest, bind("subtract", zero, longest));
  INGOT_ASSIGN_OR_RETURN(step, bind("minimum", step, longest));
  INGOT_ASSIGN_OR_RETURN(step, bind("maximum", step, shortest));
  INGOT_ASSIGN_OR_RETURN(const Expr is_back, bind("less", step, zero));
  // Forwards a walk begins and ends in [0, length], backwards it begins in [0, length - 1] and ends in [-1, length - 1].
  INGOT_ASSIGN_OR_RETURN(const Expr last, bind("subtract", length, one));
  INGOT_ASSIGN_OR_RETURN(const Expr farthest, node.Bind("where", {is_back, last, length}));
  INGOT_ASSIGN_OR_RETURN(const Expr before, node.Scalar(-1, index));
  INGOT_ASSIGN_OR_RETURN(const Expr nearest, node.Bind("where", {is_back, before, zero}));
  const auto clamp = [&](Expr place, const Expr& low) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr from_end, bind("add", place, length));
    INGOT_ASSIGN_OR_RETURN(const Expr is_from_end, bind("less", place, zero));
    INGOT_ASSIGN_OR_RETURN(place, node.Bind("where", {is_from_end, from_end, place}));
    INGOT_ASSIGN_OR_RETURN(place, bind("minimum", place, farthest));
    return bind("maximum", place, low);
  };
  INGOT_ASSIGN_OR_RETURN(start, clamp(start, zero));
  INGOT_ASSIGN_OR_RETURN(end, clamp(end, nearest));
  INGOT_ASSIGN_OR_RETURN(const Expr forwards, bind("subtract", end, start));
  INGOT_ASSIGN_OR_RETURN(const Expr backwards, bind("subtract", start, end));
  INGOT_ASSIGN_OR_RETURN(const Expr way, node.Bind("where", {is_back, backwards, forwards}));
  INGOT_ASSIGN_OR_RETURN(Expr stride, node.Bind("abs", {step}));
  INGOT_ASSIGN_OR_RETURN(stride, bind("maximum", stride, one));
  INGOT_ASSIGN_OR_RETURN(Expr taken, bind("add", way, stride));
  INGOT_ASSIGN_OR_RETURN(taken, bind("subtract", taken, one));
  INGOT_ASSIGN_OR_RETURN(taken, bind("maximum", taken, zero));
  INGOT_ASSIGN_OR_RETURN(taken, bind("floor_divide", taken, stride));
  INGOT_ASSIGN_OR_RETURN(taken, bind("minimum", taken, length));  // 0 of an axis without elements
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> lengths, node.NameElements(taken));
  for (size_t i = 0; i < axes.size(); ++i) {
    const std::vector<int64_t> first{static_cast<int64_t>(i)}, behind{static_cast<int64_t>(i) + 1}, only{0};
    const auto own_number = [&](const Expr& all) {
      return node.Bind("strided_slice", {all, PrimTuple(only), PrimTuple(first), PrimTuple(behind)});
    };
    INGOT_ASSIGN_OR_RETURN(
        Expr places,
        node.Bind("arange", {Number(ir::Int64(0)), Number(lengths[i]), Number(ir::Int64(1))}, {{"dtype", index}}));
    INGOT_ASSIGN_OR_RETURN(const Expr own_step, own_number(step));
    INGOT_ASSIGN_OR_RETURN(const Expr own_start, own_number(start));
    INGOT_ASSIGN_OR_RETURN(places, bind("multiply", places, own_step));
    INGOT_ASSIGN_OR_RETURN(places, bind("add", places, own_start));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("take", {x, places}, {{"axis", axes[i]}}));
  }
  return std::vector<Expr>{std::move(x)};
}

// Bounds are attributes until opset 9 and inputs from 10 on; they may be symbols, or data-dependent.
Outputs Slice(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (node.HasInput(4) && !node.IsConstant(4)) return SliceBySteps(node, std::move(x), in);
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

// ---- splits and tiles

// Parts of lengths that are known when the model runs, where they are compared with the axis.
Outputs SplitBySymbols(const NodeImporter& node, Expr x, int64_t axis, const std::vector<PrimExpr>& lengths) {
  const auto at = static_cast<size_t>(axis);
  std::vector<PrimExpr> places{ir::Int64(0)};
  for (const PrimExpr& length : lengths) places.push_back(op::SimplifyDim(places.back() + length));
  std::vector<PrimExpr> dims = DimsOf(x);
  dims[at] = places.back();
  x = WithDims(node, std::move(x), dims);
  std::vector<Expr> parts;
  for (size_t i = 0; i < lengths.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(Expr part, node.Bind("strided_slice", {x, PrimTuple(std::vector<int64_t>{axis}),
                                                                  PrimTuple(std::vector<PrimExpr>{places[i]}),
                                                                  PrimTuple(std::vector<PrimExpr>{places[i + 1]})}));
    dims[at] = lengths[i];
    parts.push_back(WithDims(node, std::move(part), dims));
  }
  return parts;
}

// Lengths are an attribute until opset 12 and an input from 13 on; without them the parts are equal, and the last one
// may be shorter.
Outputs Split(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", 0));
  std::vector<int64_t> lengths;
  const auto parts = std::ssize(node.node().outputs);
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.DataInts(1, "the lengths of the parts", parts));
    for (const PrimExpr& length : given) {
      const auto constant = ir::AsConstInt(length);
      if (!constant && std::ssize(given) == parts) return SplitBySymbols(node, std::move(x), axis, given);
      lengths.push_back(constant.value_or(-1));
    }
  } else {
    INGOT_ASSIGN_OR_RETURN(lengths, node.Ints("split", {}));
  }
  if (lengths.empty()) {
    if (parts == 1) return std::vector<Expr>{std::move(x)};
    return Fields(node.Bind("split", {x}, {{"indices_or_sections", int64_t{parts}}, {"axis", axis}}));
  }
  if (std::ssize(lengths) != parts) {
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
    std::vector<PrimExpr> whole = in;
    whole[static_cast<size_t>(axis)] = ir::Int64(end);
    x = WithDims(node, std::move(x), std::move(whole));
  }
  if (parts == 1) return std::vector<Expr>{std::move(x)};
  places.pop_back();
  return Fields(node.Bind("split", {x}, {{"indices_or_sections", std::move(places)}, {"axis", axis}}));
}

Outputs Tile(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> repeats, node.DataInts(1, "the repeats", std::ssize(in)));
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

constexpr OnnxOpRow kPartRows[] = {
    {"Slice", nullptr, Slice},
    {"Split", nullptr, Split},
    {"Tile", nullptr, Tile},
};

}  // namespace

std::span<const OnnxOpRow> PartOnnxOps() { return kPartRows; }

}  // namespace ingot::importer
