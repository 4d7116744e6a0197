// Pad and CenterCropPad. Constant widths are one call of nn.pad; others are parts that are joined, or elements that are
// taken in another order.
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"

namespace ingot::importer {
namespace {

// ---- constant widths

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

// Returns x without so many elements at the ends of its axes, which it must have.
Result<Expr> CutOff(const NodeImporter& node, Expr x, const std::vector<PrimExpr>& before,
                    const std::vector<PrimExpr>& after) {
  std::vector<PrimExpr> dims = DimsOf(x), axes, starts, ends;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (ir::IsConstInt(before[i], 0) && ir::IsConstInt(after[i], 0)) continue;
    axes.push_back(ir::Int64(static_cast<int64_t>(i)));
    starts.push_back(before[i]);
    const std::optional<int64_t> from_end = ir::AsConstInt(after[i]);
    const bool is_counted_back = from_end && *from_end > 0;
    ends.push_back(is_counted_back ? ir::Int64(-*from_end) : op::SimplifyDim(dims[i] - after[i]));
    dims[i] = op::SimplifyDim(dims[i] - before[i] - after[i]);
    const std::optional<int64_t> left = ir::AsConstInt(dims[i]);
    if (left && *left < 0) return node.Invalid("axis " + std::to_string(i) + " has less than what is cut off");
  }
  if (axes.empty()) return x;
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("strided_slice", {x, PrimTuple(axes), PrimTuple(starts), PrimTuple(ends)}));
  return WithDims(node, std::move(x), std::move(dims));
}

// Pads, and cuts off where the padding is negative. Constants are added first, as more may be cut off than the data
// have of an axis; what repeats elements repeats those that are left.
Outputs PadBy(const NodeImporter& node, Expr x, const Padding& padding, const std::string& mode, double value) {
  const size_t rank = padding.before.size();
  const std::vector<PrimExpr> none(rank, ir::Int64(0));
  // What is cut off the data, and what is cut off an axis that was made longer at its other end.
  std::vector<PrimExpr> before = none, after = none, before_later = none, after_later = none;
  std::vector<int64_t> widths;
  for (size_t i = 0; i < rank; ++i) {
    widths.push_back(std::max<int64_t>(padding.before[i], 0));
    widths.push_back(std::max<int64_t>(padding.after[i], 0));
    const bool is_later = mode == "constant" && widths[2 * i] + widths[2 * i + 1] > 0;
    (is_later ? before_later : before)[i] = ir::Int64(std::max<int64_t>(-padding.before[i], 0));
    (is_later ? after_later : after)[i] = ir::Int64(std::max<int64_t>(-padding.after[i], 0));
  }
  INGOT_ASSIGN_OR_RETURN(x, CutOff(node, std::move(x), before, after));
  if (std::ranges::any_of(widths, [](int64_t width) { return width != 0; })) {
    INGOT_ASSIGN_OR_RETURN(
        x,
        node.Bind("nn.pad", {x}, {{"pad_width", AttrValue::Ints(widths)}, {"pad_value", value}, {"pad_mode", mode}}));
  }
  return One(CutOff(node, std::move(x), before_later, after_later));
}

// ---- widths that are no constants

// Widths per axis: what is added, and what is cut off where a width is negative.
struct SymbolicPadding {
  std::vector<PrimExpr> added_before, added_after, cut_before, cut_after;
};

// Returns the integers of a tensor of rank 1, named piece by piece: a shape has at most kMaxRank dims.
Result<std::vector<PrimExpr>> NameWidths(const NodeImporter& node, const Expr& widths, int64_t count) {
  std::vector<PrimExpr> named;
  for (int64_t begin : {int64_t{0}, count / 2}) {
    const std::vector<int64_t> axis = {0}, first = {begin}, end = {begin + count / 2};
    INGOT_ASSIGN_OR_RETURN(const Expr part,
                           node.Bind("strided_slice", {widths, PrimTuple(axis), PrimTuple(first), PrimTuple(end)}));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> names, node.NameElements(part));
    named.insert(named.end(), names.begin(), names.end());
  }
  return named;
}

// The widths of input 1, which follow from shapes or from data, for the axes of input 3.
Result<SymbolicPadding> ReadSymbolicPadding(const NodeImporter& node, size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (node.HasInput(3)) {
    INGOT_ASSIGN_OR_RETURN(axes, node.ConstantInts(3, "the axes"));
  }
  std::vector<PrimExpr> added, cut;
  const PrimExpr zero = ir::Int64(0);
  if (node.MayBeKnown(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> widths, node.SymbolicInts(1, "the padding"));
    for (const PrimExpr& width : widths) {
      added.push_back(op::SimplifyDim(ir::Max(width, zero)));
      // What is cut off is what is added less the width, so that the maximum cancels in the length of the result.
      cut.push_back(op::SimplifyDim(added.back() - width));
    }
  } else {
    INGOT_ASSIGN_OR_RETURN(Expr widths, node.Input(1));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> length, StaticRankDims(node, 1));
    if (length.size() != 1) return node.Invalid("the padding: expected a vector of integers");
    const auto count = static_cast<int64_t>(2 * axes.size());
    if (op::DimsDiffer(length[0], ir::Int64(count))) return node.Invalid("expected two figures of padding per axis");
    widths = WithDims(node, std::move(widths), {ir::Int64(count)});
    INGOT_ASSIGN_OR_RETURN(widths, CastTo(node, std::move(widths), DataType::Int(64)));
    INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(0, DataType::Int(64)));
    INGOT_ASSIGN_OR_RETURN(const Expr positive, node.Bind("maximum", {widths, none}));
    INGOT_ASSIGN_OR_RETURN(Expr negative, node.Bind("subtract", {none, widths}));
    INGOT_ASSIGN_OR_RETURN(negative, node.Bind("maximum", {negative, none}));
    INGOT_ASSIGN_OR_RETURN(added, NameWidths(node, positive, count));
    INGOT_ASSIGN_OR_RETURN(cut, NameWidths(node, negative, count));
  }
  if (added.size() != 2 * axes.size()) return node.Invalid("expected two figures of padding per axis");
  const std::vector<PrimExpr> none(rank, zero);
  SymbolicPadding padding{none, none, none, none};
  for (size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t axis, NormaliseAxis(node, axes[i], static_cast<int64_t>(rank)));
    const auto at = static_cast<size_t>(axis);
    padding.added_before[at] = added[i];
    padding.added_after[at] = added[i + axes.size()];
    padding.cut_before[at] = cut[i];
    padding.cut_after[at] = cut[i + axes.size()];
  }
  return padding;
}

// Returns the place in [0, extent) whose element stands at each place of [-before, extent + after).
Result<Expr> PlacesOf(const NodeImporter& node, const PrimExpr& before, const PrimExpr& extent, const PrimExpr& after,
                      const std::string& mode) {
  const DataType index = DataType::Int(64);
  const PrimExpr zero = ir::Int64(0), one = ir::Int64(1);
  INGOT_ASSIGN_OR_RETURN(
      Expr places, node.Bind("arange", {Number(zero), Number(op::SimplifyDim(before + extent + after)), Number(one)},
                             {{"dtype", index}}));
  const auto scalar = [&](const PrimExpr& value) -> Result<Expr> {
    INGOT_ASSIGN_OR_RETURN(const Expr tensor, node.Bind("shape_to_tensor", {ShapeOf({op::SimplifyDim(value)})}));
    return node.Bind("reshape", {tensor, ShapeOf({})});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr shift, scalar(before));
  INGOT_ASSIGN_OR_RETURN(const Expr length, scalar(extent));
  INGOT_ASSIGN_OR_RETURN(const Expr first, node.Scalar(0, index));
  INGOT_ASSIGN_OR_RETURN(const Expr step, node.Scalar(1, index));
  INGOT_ASSIGN_OR_RETURN(const Expr last, node.Bind("subtract", {length, step}));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("subtract", {places, shift}));
  if (mode == "circular") return node.Bind("floor_mod", {places, length});
  if (mode == "replicate") {
    INGOT_ASSIGN_OR_RETURN(places, node.Bind("maximum", {places, first}));
    return node.Bind("minimum", {places, last});
  }
  // Reflected at the first element, then at the last one: the edges are not repeated.
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("abs", {places}));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("subtract", {last, places}));
  INGOT_ASSIGN_OR_RETURN(places, node.Bind("abs", {places}));
  return node.Bind("subtract", {last, places});
}

// Adds along each axis, parts of one value or elements of x in another order, and cuts off as PadBy does.
Outputs PadBySymbols(const NodeImporter& node, Expr x, const SymbolicPadding& padding, const std::string& mode,
                     const Expr& value) {
  const auto is_zero = [](const PrimExpr& width) { return ir::IsConstInt(width, 0); };
  if (mode != "constant") {
    INGOT_ASSIGN_OR_RETURN(x, CutOff(node, std::move(x), padding.cut_before, padding.cut_after));
  }
  for (size_t i = 0; i < padding.cut_before.size(); ++i) {
    const auto axis = static_cast<int64_t>(i);
    const PrimExpr &before = padding.added_before[i], &after = padding.added_after[i];
    if (is_zero(before) && is_zero(after)) continue;
    if (mode != "constant") {
      INGOT_ASSIGN_OR_RETURN(const Expr places, PlacesOf(node, before, DimsOf(x)[i], after, mode));
      INGOT_ASSIGN_OR_RETURN(x, node.Bind("take", {x, places}, {{"axis", axis}}));
      continue;
    }
    std::vector<Expr> parts;
    for (const PrimExpr& width : {before, PrimExpr(), after}) {
      if (width == nullptr) {
        parts.push_back(x);
      } else if (!is_zero(width)) {
        std::vector<PrimExpr> dims = DimsOf(x);
        dims[i] = width;
        INGOT_ASSIGN_OR_RETURN(Expr part, node.Bind("full", {ShapeOf(std::move(dims)), value}));
        parts.push_back(std::move(part));
      }
    }
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("concat", {TupleOf(std::move(parts))}, {{"axis", axis}}));
  }
  if (mode != "constant") return std::vector<Expr>{std::move(x)};
  return One(CutOff(node, std::move(x), padding.cut_before, padding.cut_after));
}

// Whether the widths are an input that is no constant.
bool HasSymbolicWidths(const NodeImporter& node) {
  if (!node.HasInput(1)) return false;
  return !node.IsConstant(1);
}

Outputs Pad(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(std::string mode, node.String("mode", "constant"));
  if (mode == "edge")
    mode = "replicate";
  else if (mode == "wrap")
    mode = "circular";
  else if (mode != "constant" && mode != "reflect")
    return node.Invalid("mode is \"" + mode + "\"");
  if (HasSymbolicWidths(node)) {
    INGOT_ASSIGN_OR_RETURN(const SymbolicPadding widths, ReadSymbolicPadding(node, in.size()));
    INGOT_ASSIGN_OR_RETURN(Expr filling, node.HasInput(2) ? node.Input(2) : node.Scalar(0, DTypeOf(x)));
    INGOT_ASSIGN_OR_RETURN(filling, node.Bind("reshape", {filling, ShapeOf({})}));
    if (DTypeOf(filling) != DTypeOf(x)) return node.Invalid("the value has another dtype");
    return PadBySymbols(node, x, widths, mode, filling);
  }
  INGOT_ASSIGN_OR_RETURN(const Padding padding, ReadPadding(node, in.size()));
  INGOT_ASSIGN_OR_RETURN(double value, node.Float("value", 0));
  bool value_is_data = false;  // or an integer that no double holds
  if (mode == "constant") {
    const Result<double> number = node.ConstantNumber(2, "the value of the padding", value);
    value_is_data = number.status().code() == StatusCode::kUnsupportedModel;
    if (!value_is_data) {
      INGOT_ASSIGN_OR_RETURN(value, number);
    }
  }
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

// Returns x with this length of the axis; the length is checked at run time.
Result<Expr> WithDim(const NodeImporter& node, const Expr& x, size_t axis, int64_t length) {
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  std::vector<PrimExpr> dims = *type->dims;
  dims[axis] = ir::Int64(length);
  return node.Match(x, ir::Make<ir::TensorTypeNode>(std::move(dims), type->dtype));
}

// Crops or pads to lengths that are known when the model runs.
Outputs CropOrPadTo(const NodeImporter& node, Expr x, const std::vector<int64_t>& axes,
                    const std::vector<PrimExpr>& targets) {
  std::vector<PrimExpr> dims = DimsOf(x);
  const PrimExpr zero = ir::Int64(0), two = ir::Int64(2);
  const std::vector<PrimExpr> none(dims.size(), zero);
  SymbolicPadding padding{none, none, none, none};
  for (size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t axis, NormaliseAxis(node, axes[i], std::ssize(dims)));
    const auto at = static_cast<size_t>(axis);
    const PrimExpr missing = ir::Max(targets[i] - dims[at], zero), surplus = ir::Max(dims[at] - targets[i], zero);
    padding.added_before[at] = op::SimplifyDim(ir::FloorDiv(missing, two));
    padding.added_after[at] = op::SimplifyDim(missing - ir::FloorDiv(missing, two));
    padding.cut_before[at] = op::SimplifyDim(ir::FloorDiv(surplus, two));
    padding.cut_after[at] = op::SimplifyDim(surplus - ir::FloorDiv(surplus, two));
    dims[at] = targets[i];
  }
  INGOT_ASSIGN_OR_RETURN(const Expr filling, node.Scalar(0, DTypeOf(x)));
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> y, PadBySymbols(node, std::move(x), padding, "constant", filling));
  return std::vector<Expr>{WithDims(node, y[0], std::move(dims))};
}

// Crops the middle of an axis that is too long, and pads an axis that is too short on both sides.
Outputs CenterCropPad(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  std::vector<int64_t> axes(in.size());
  std::iota(axes.begin(), axes.end(), 0);
  INGOT_ASSIGN_OR_RETURN(axes, node.Ints("axes", std::move(axes)));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> targets, node.DataInts(1, "the shape", std::ssize(axes)));
  if (axes.size() != targets.size()) return node.Invalid("expected one target per axis");
  std::vector<int64_t> shape;
  for (const PrimExpr& target : targets) {
    const auto length = ir::AsConstInt(target);
    if (!length) return CropOrPadTo(node, std::move(x), axes, targets);
    shape.push_back(*length);
  }
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

constexpr OnnxOpRow kPaddingRows[] = {
    {"CenterCropPad", nullptr, CenterCropPad},
    {"Pad", nullptr, Pad},
};

}  // namespace

std::span<const OnnxOpRow> PaddingOnnxOps() { return kPaddingRows; }

}  // namespace ingot::importer
