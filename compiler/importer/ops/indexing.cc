// What moves elements to other places: slices, parts, gathers and scatters, padding, order, ranges.
#include "compiler/importer/ops/families.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

Expr Prim(PrimExpr value) { return ir::Make<ir::PrimValueNode>(std::move(value)); }

Expr PrimTuple(const std::vector<PrimExpr>& values) {
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  for (const PrimExpr& value : values) {
    fields.push_back(Prim(value));
    types.push_back(fields.back()->type);
  }
  return ir::Make<ir::TupleNode>(std::move(fields), ir::Make<ir::TupleTypeNode>(std::move(types)));
}
Expr PrimTuple(const std::vector<int64_t>& values) {
  std::vector<PrimExpr> exprs;
  for (int64_t value : values) exprs.push_back(ir::Int64(value));
  return PrimTuple(exprs);
}

Result<int64_t> AxisOf(const NodeImporter& node, const char* name, int64_t default_value, size_t input = 0) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, input));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, node.Int(name, default_value));
  return NormaliseAxis(node, axis, static_cast<int64_t>(in.size()));
}

// The fields of a call with several results.
Outputs Fields(Result<Expr> call) {
  if (!call.ok()) return std::move(call).status();
  const auto* type = ir::As<ir::TupleTypeNode>((*call)->type);
  if (type == nullptr) return std::vector<Expr>{*std::move(call)};
  std::vector<Expr> fields;
  for (size_t i = 0; i < type->fields.size(); ++i) {
    fields.push_back(ir::Make<ir::TupleGetItemNode>(*call, static_cast<int64_t>(i), type->fields[i]));
  }
  return fields;
}

// ---- parts

// table[0:n] of a weight is n long, where n is a symbol: positions beyond a table of them are an error in every model. So n
// is bounded by the table's length instead of every length behind it being min(n, length).
Result<Expr> WithinWeight(const NodeImporter& node, Expr slice, const std::vector<PrimExpr>& in,
                          const std::vector<int64_t>& axes, const std::vector<PrimExpr>& starts,
                          const std::vector<PrimExpr>& ends, const std::vector<int64_t>& steps) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  const auto* type = ir::As<ir::TensorTypeNode>(slice->type);
  if (ir::As<ir::ConstantNode>(x) == nullptr || type == nullptr || !type->dims.has_value()) return slice;
  std::vector<PrimExpr> dims = *type->dims;
  bool changes = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const ir::PrimVar symbol = ir::AsRef<ir::PrimVarNode>(ends[i]);
    const int64_t* length = ir::AsConstInt(in[static_cast<size_t>(axes[i])]);
    if (symbol == nullptr || length == nullptr || !ir::IsConstInt(starts[i], 0) || steps[i] != 1) continue;
    node.ImplyAtMost(symbol, *length);
    dims[static_cast<size_t>(axes[i])] = symbol;
    changes = true;
  }
  if (!changes) return slice;
  return ReshapeTo(node, std::move(slice), std::move(dims));
}

// Bounds are attributes until opset 9 and inputs from 10 on; they may be symbols.
Outputs Slice(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  std::vector<PrimExpr> starts, ends;
  std::vector<int64_t> axes;
  if (node.num_inputs() > 1) {
    INGOT_ASSIGN_OR_RETURN(starts, node.SymbolicInts(1, "the starts"));
    INGOT_ASSIGN_OR_RETURN(ends, node.SymbolicInts(2, "the ends"));
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
  }
  INGOT_ASSIGN_OR_RETURN(Expr slice, node.Bind("strided_slice", {x, PrimTuple(axes), PrimTuple(starts), PrimTuple(ends),
                                                                 PrimTuple(steps)}));
  return One(WithinWeight(node, std::move(slice), in, axes, starts, ends, steps));
}

// The lengths are an attribute until opset 12 and an input from 13 on; without them the parts are equal, the last one
// may be shorter.
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
  const int64_t* extent = ir::AsConstInt(in[static_cast<size_t>(axis)]);
  if (extent == nullptr) return node.Unsupported("parts of given lengths of a symbolic dimension");
  if (*extent != end) return node.Invalid("the parts' lengths do not add up to " + std::to_string(*extent));
  if (parts == 1) return std::vector<Expr>{std::move(x)};
  places.pop_back();
  return Fields(node.Bind("split", {x}, {{"indices_or_sections", std::move(places)}, {"axis", axis}}));
}

Outputs Tile(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, node.ConstantInts(1, "the repeats"));
  if (repeats.size() != in.size()) return node.Invalid("expected one repeat per dimension");
  for (int64_t repeat : repeats) {
    if (repeat < 0) return node.Invalid("a repeat is " + std::to_string(repeat));
  }
  return One(node.Call("tile", {x}, {{"repeats", AttrValue::Ints(repeats)}}));
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

// Cuts off what is negative, then surrounds.
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
  INGOT_ASSIGN_OR_RETURN(value, node.ConstantNumber(2, "the value of the padding", value));
  if (mode == "edge")
    mode = "replicate";
  else if (mode == "wrap")
    mode = "circular";
  else if (mode != "constant" && mode != "reflect")
    return node.Invalid("mode is \"" + mode + "\"");
  return PadBy(node, x, padding, mode, value);
}

// The middle of an axis that is too long, the middle of zeros where it is too short.
Outputs CenterCropPad(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, node.ConstantInts(1, "the shape"));
  std::vector<int64_t> axes(in.size());
  std::iota(axes.begin(), axes.end(), 0);
  INGOT_ASSIGN_OR_RETURN(axes, node.Ints("axes", std::move(axes)));
  if (axes.size() != shape.size()) return node.Invalid("expected one target per axis");
  Padding padding{std::vector<int64_t>(in.size()), std::vector<int64_t>(in.size())};
  for (size_t i = 0; i < axes.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const int64_t axis, NormaliseAxis(node, axes[i], static_cast<int64_t>(in.size())));
    const int64_t* extent = ir::AsConstInt(in[static_cast<size_t>(axis)]);
    constexpr int64_t kMost = int64_t{1} << 40;
    if (extent == nullptr) return node.Unsupported("a symbolic dimension");
    if (shape[i] < 0 || shape[i] > kMost) return node.Invalid("the shape holds " + std::to_string(shape[i]));
    const int64_t size = shape[i] < *extent ? *extent - shape[i] : shape[i] - *extent;
    const int64_t sign = shape[i] < *extent ? -1 : 1;
    padding.before[static_cast<size_t>(axis)] = sign * (size / 2);
    padding.after[static_cast<size_t>(axis)] = sign * (size - size / 2);
  }
  return PadBy(node, x, padding, "constant", 0);
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

// A constant of one integer, as a tensor of the dtype.
Result<Expr> IntConstant(const NodeImporter& node, int64_t value, DataType dtype) {
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  const Expr constant =
      ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(DataType::Int(64), {}, std::move(bytes)));
  if (dtype == DataType::Int(64)) return constant;
  return node.Bind("astype", {constant}, {{"dtype", dtype}});
}

// values holds what stands elsewhere and what stands at the index; negative indices count from the end.
Outputs OneHot(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const double depth_number, node.ConstantNumber(1, "the depth", 0));
  INGOT_ASSIGN_OR_RETURN(Expr values, node.Input(2));
  INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", -1));
  INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size()) + 1));
  constexpr double kMaxDepth = 1e12;
  if (!(depth_number >= 0 && depth_number <= kMaxDepth)) return node.Invalid("the depth is no length");
  const auto depth = static_cast<int64_t>(depth_number);
  const DataType i64 = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (*type->dtype != i64) {
    INGOT_ASSIGN_OR_RETURN(indices, node.Bind("astype", {indices}, {{"dtype", i64}}));
  }
  INGOT_ASSIGN_OR_RETURN(Expr zero, IntConstant(node, 0, i64));
  INGOT_ASSIGN_OR_RETURN(Expr length, IntConstant(node, depth, i64));
  INGOT_ASSIGN_OR_RETURN(Expr is_negative, node.Bind("less", {indices, zero}));
  INGOT_ASSIGN_OR_RETURN(Expr from_end, node.Bind("add", {indices, length}));
  INGOT_ASSIGN_OR_RETURN(indices, node.Bind("where", {is_negative, from_end, indices}));
  INGOT_ASSIGN_OR_RETURN(Expr hot, node.Bind("one_hot", {indices, Prim(ir::Int64(1)), Prim(ir::Int64(0))},
                                             {{"depth", depth}, {"axis", axis}}));
  INGOT_ASSIGN_OR_RETURN(hot, node.Bind("not_equal", {hot, zero}));
  std::vector<Expr> chosen;  // elsewhere, at the index
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

// k is an attribute until opset 9 and an input from 10 on.
Outputs TopK(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", -1));
  INGOT_ASSIGN_OR_RETURN(const int64_t largest, node.Int("largest", 1));
  int64_t k = 0;
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> given, node.ConstantInts(1, "k"));
    if (given.size() != 1) return node.Invalid("k: expected one number");
    k = given[0];
  } else {
    INGOT_ASSIGN_OR_RETURN(k, node.Int("k", 0));
  }
  return Fields(node.Bind(
      "topk", {x},
      {{"k", k}, {"axis", axis}, {"ret_type", "both"}, {"largest", largest != 0}, {"dtype", DataType::Int(64)}}));
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

// Backwards: the axis is turned round before and after.
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
  return One(node.Call(upper != 0 ? "triu" : "tril", {x, Prim(k)}));
}

// ---- made from nothing

// The ends may be symbols.
Outputs Range(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  std::vector<Expr> ends;
  for (size_t i = 0; i < 3; ++i) {
    const std::optional<ShapeValue> value = node.Known(i);
    if (!value.has_value()) return node.Unsupported("the range is not a constant");
    if (value->elements.size() != 1) return node.Invalid("expected three numbers");
    PrimExpr end = value->elements[0];
    if (type->dtype->is_floating() && end->kind == ir::PrimKind::kIntImm) {
      end = ir::FloatImm(*type->dtype, static_cast<double>(*ir::AsConstInt(end)));
    }
    if (type->dtype->is_floating() != end->dtype.is_floating())
      return node.Unsupported("a range of fractions up to a symbol");
    ends.push_back(Prim(end));
  }
  return One(node.Call("arange", std::move(ends), {{"dtype", *type->dtype}}));
}

constexpr OnnxOpRow kRows[] = {
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

std::span<const OnnxOpRow> IndexingOnnxOps() { return kRows; }

}  // namespace ingot::importer
