// Operators that move elements to other places: gathers and scatters, order, ranges.
#include "compiler/importer/ops/families.h"

#include <cmath>
#include <cstring>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/infer.h"
#include "runtime/tensor.h"

namespace ingot::importer {
namespace {

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
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> places, StaticRankDims(node, 1));
  if (!places.empty() && !ir::AsConstInt(places.back())) {
    return node.Unsupported("indices of which it is not known how many axes they name");
  }
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
  INGOT_ASSIGN_OR_RETURN(std::vector<PrimExpr> places, StaticRankDims(node, 1));
  if (!places.empty() && !ir::AsConstInt(places.back())) {  // the ranks say how many axes a place has
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> parts, StaticRankDims(node, 2));
    const int64_t depth = std::ssize(places) - 1 + std::ssize(in) - std::ssize(parts);
    if (depth < 0) return node.Invalid("the updates have too many axes");
    places.back() = ir::Int64(depth);
    indices = WithDims(node, std::move(indices), std::move(places));
  }
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
  if (!node.HasInput(1) || node.IsConstant(1)) {
    INGOT_ASSIGN_OR_RETURN(const double depth, node.ConstantNumber(1, "the depth", 0));
    if (!(depth >= 0 && depth <= kMaxDepth)) return node.Invalid("the depth is no length");
    return ir::Int64(static_cast<int64_t>(depth));
  }
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(1));
  const bool is_index = *type->dtype == DataType::Int(64) || *type->dtype == DataType::Int(32);
  if (is_index && node.MayBeKnown(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> symbols, node.SymbolicInts(1, "the depth"));
    if (symbols.size() != 1) return node.Invalid("the depth: expected one number");
    return symbols[0];
  }
  INGOT_ASSIGN_OR_RETURN(Expr depth, node.Input(1));
  if (*type->dtype != DataType::Int(64)) {
    INGOT_ASSIGN_OR_RETURN(depth, node.Bind("astype", {depth}, {{"dtype", DataType::Int(64)}}));
  }
  INGOT_ASSIGN_OR_RETURN(depth, node.Bind("reshape", {depth, ShapeOf({ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> size, node.NameLengths(depth));
  return size[0];
}

// `values` holds the value elsewhere and the value at the index; negative indices count from the end.
Outputs OneHot(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr indices, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const Expr values, InputOfDims(node, 2, {ir::Int64(2)}));
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

// The first k elements of the whole order, for a k that is no constant, or an axis of unknown length: k must not exceed
// the length, which is checked when the model runs.
Outputs SortedToSymbol(const NodeImporter& node, const Expr& x, int64_t axis, bool largest, const PrimExpr& k) {
  const PrimExpr extent = DimsOf(x)[static_cast<size_t>(axis)];
  INGOT_ASSIGN_OR_RETURN(
      const Expr places,
      node.Bind("argsort", {x}, {{"axis", axis}, {"descending", largest}, {"dtype", DataType::Int(64)}}));
  INGOT_ASSIGN_OR_RETURN(const Expr values, node.Bind("gather_elements", {x, places}, {{"axis", axis}}));
  if (!arith::Analyzer().ProveLessEqual(k, extent)) {
    node.Match(ShapeOf({ir::Min(k, extent)}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{k}));
  }
  std::vector<Expr> parts = {values, places};
  for (Expr& part : parts) {
    const std::vector<PrimExpr> begin = {ir::Int64(0)}, end = {k};
    const std::vector<int64_t> axes = {axis}, step = {1};
    INGOT_ASSIGN_OR_RETURN(
        part, node.Bind("strided_slice", {part, PrimTuple(axes), PrimTuple(begin), PrimTuple(end), PrimTuple(step)}));
    std::vector<PrimExpr> dims = DimsOf(x);
    dims[static_cast<size_t>(axis)] = k;
    part = WithDims(node, std::move(part), std::move(dims));
  }
  return parts;
}

// k is an attribute until opset 9 and an input from 10 on.
Outputs TopK(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, "axis", -1));
  INGOT_ASSIGN_OR_RETURN(const int64_t largest, node.Int("largest", 1));
  if (!node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const int64_t k, node.Int("k", 0));
    return SortedTo(node, x, axis, largest != 0, k);
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, node.DataInts(1, "k", 1));
  if (given.size() != 1) return node.Invalid("k: expected one number");
  const auto k = ir::AsConstInt(given[0]);
  if (k) return SortedTo(node, x, axis, largest != 0, *k);
  return SortedToSymbol(node, x, axis, largest != 0, given[0]);
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

// The number in input 1. What is known at run time alone is named by how far it is above 0, and below.
Result<std::vector<PrimExpr>> Diagonal(const NodeImporter& node) {
  if (node.MayBeKnown(1)) return node.SymbolicInts(1, "the diagonal");
  INGOT_ASSIGN_OR_RETURN(Expr k, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(k, CastTo(node, std::move(k), DataType::Int(64)));
  INGOT_ASSIGN_OR_RETURN(k, node.Bind("reshape", {k, ShapeOf({ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(const Expr zero, node.Scalar(0, DataType::Int(64)));
  INGOT_ASSIGN_OR_RETURN(const Expr farthest, node.Scalar(-0x1p62, DataType::Int(64)));  // that has an opposite
  INGOT_ASSIGN_OR_RETURN(k, node.Bind("maximum", {k, farthest}));
  INGOT_ASSIGN_OR_RETURN(const Expr above, node.Bind("maximum", {k, zero}));
  INGOT_ASSIGN_OR_RETURN(const Expr below, node.Bind("subtract", {above, k}));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> up, node.NameElements(above));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> down, node.NameElements(below));
  return std::vector<PrimExpr>{op::SimplifyDim(up[0] - down[0])};
}

Outputs Trilu(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t upper, node.Int("upper", 1));
  PrimExpr k = ir::Int64(0);
  if (node.HasInput(1)) {
    INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> given, Diagonal(node));
    if (given.size() != 1) return node.Invalid("the diagonal: expected one number");
    k = given[0];
  }
  return One(node.Call(upper != 0 ? "triu" : "tril", {x, Number(k)}));
}

// ---- new values

// Data-dependent ends: the number of steps between them is computed at run time.
// The number of steps from ends that are floats, of one element each.
Result<Expr> StepsOfFloats(const NodeImporter& node, const std::vector<Expr>& ends) {
  const DataType wide = DataType::Float(64);
  std::vector<Expr> numbers;
  for (const Expr& end : ends) {
    INGOT_ASSIGN_OR_RETURN(Expr number, CastTo(node, end, wide));
    numbers.push_back(std::move(number));
  }
  INGOT_ASSIGN_OR_RETURN(Expr count, node.Bind("subtract", {numbers[1], numbers[0]}));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("divide", {count, numbers[2]}));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("ceil", {count}));
  INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(0, wide));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("maximum", {count, none}));
  return node.Bind("astype", {count}, {{"dtype", DataType::Int(64)}});
}

// The same for integers, without rounding: in uint64 the distance does not wrap around.
Result<Expr> StepsOfIntegers(const NodeImporter& node, const std::vector<Expr>& ends) {
  const DataType index = DataType::Int(64), distance_dtype = DataType::UInt(64);
  std::vector<Expr> numbers;
  for (const Expr& end : ends) {
    INGOT_ASSIGN_OR_RETURN(Expr number, CastTo(node, end, index));
    numbers.push_back(std::move(number));
  }
  INGOT_ASSIGN_OR_RETURN(const Expr zero, IntConstant(node, 0, index));
  INGOT_ASSIGN_OR_RETURN(const Expr one, IntConstant(node, 1, distance_dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr rises, node.Bind("less", {zero, numbers[2]}));
  INGOT_ASSIGN_OR_RETURN(const Expr low, node.Bind("where", {rises, numbers[0], numbers[1]}));
  INGOT_ASSIGN_OR_RETURN(const Expr high, node.Bind("where", {rises, numbers[1], numbers[0]}));
  INGOT_ASSIGN_OR_RETURN(const Expr has_steps, node.Bind("less", {low, high}));
  INGOT_ASSIGN_OR_RETURN(Expr last, node.Bind("subtract", {high, low}));
  INGOT_ASSIGN_OR_RETURN(last, CastTo(node, last, distance_dtype));
  INGOT_ASSIGN_OR_RETURN(last, node.Bind("subtract", {last, one}));
  INGOT_ASSIGN_OR_RETURN(Expr stride, node.Bind("negative", {numbers[2]}));
  INGOT_ASSIGN_OR_RETURN(stride, node.Bind("where", {rises, numbers[2], stride}));
  INGOT_ASSIGN_OR_RETURN(stride, CastTo(node, stride, distance_dtype));
  INGOT_ASSIGN_OR_RETURN(Expr count, node.Bind("divide", {last, stride}));
  INGOT_ASSIGN_OR_RETURN(count, node.Bind("add", {count, one}));
  INGOT_ASSIGN_OR_RETURN(count, CastTo(node, count, index));
  return node.Bind("where", {has_steps, count, zero});
}

// A step of 0 is refused at run time.
Outputs RangeByData(const NodeImporter& node, DataType dtype) {
  std::vector<Expr> ends;
  for (size_t i : {0, 1, 2}) {
    INGOT_ASSIGN_OR_RETURN(Expr end, node.Input(i));
    INGOT_ASSIGN_OR_RETURN(end, node.Bind("reshape", {end, ShapeOf({ir::Int64(1)})}));
    ends.push_back(std::move(end));
  }
  const DataType index = DataType::Int(64);
  INGOT_ASSIGN_OR_RETURN(Expr moves, node.Bind("astype", {ends[2]}, {{"dtype", DataType::Bool()}}));
  INGOT_ASSIGN_OR_RETURN(moves, CastTo(node, moves, index));
  INGOT_ASSIGN_OR_RETURN(moves, node.Bind("tensor_to_shape", {moves}));
  node.Match(moves, ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{ir::Int64(1)}));
  INGOT_ASSIGN_OR_RETURN(const Expr count,
                         dtype.is_floating() ? StepsOfFloats(node, ends) : StepsOfIntegers(node, ends));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> size, node.NameElements(count));
  INGOT_ASSIGN_OR_RETURN(Expr steps, node.Bind("arange", {Number(ir::Int64(0)), Number(size[0]), Number(ir::Int64(1))},
                                               {{"dtype", index}}));
  // Steps of floats narrower than float32 are computed in float32.
  const DataType exact = StepType(dtype);
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

// Returns the whole number that a float is; null if it is a fraction, or its dtype may not hold it.
PrimExpr WholeOf(const PrimExpr& x) {
  constexpr double kLargest = 1 << 24;
  const auto* fraction = ir::As<ir::FloatImmNode>(x);
  if (fraction == nullptr) return x;
  const bool is_whole = std::trunc(fraction->value) == fraction->value && std::abs(fraction->value) <= kLargest;
  return is_whole ? ir::Int64(static_cast<int64_t>(fraction->value)) : nullptr;
}

// The ends may be symbols. Floats that are whole numbers up to a symbol are integers first; of fractions, the number of
// steps is computed when the model runs.
Outputs Range(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const bool is_floating = type->dtype->is_floating();
  std::vector<Expr> ends, whole;
  bool has_symbol = false, has_fraction = false, is_exact = true;
  for (size_t i = 0; i < 3; ++i) {
    const std::optional<ShapeValue> value = node.Formula(i);
    if (!value.has_value()) return RangeByData(node, *type->dtype);
    if (value->elements.size() != 1) return node.Invalid("expected three numbers");
    PrimExpr end = value->elements[0];
    is_exact = is_exact && value->is_exact();
    const PrimExpr integer = WholeOf(end);
    has_fraction |= integer == nullptr;
    whole.push_back(integer == nullptr ? nullptr : Number(integer));
    if (is_floating && end->kind == ir::PrimKind::kIntImm) {
      end = ir::FloatImm(*type->dtype, static_cast<double>(*ir::AsConstInt(end)));
    }
    has_symbol |= is_floating != end->dtype.is_floating();
    ends.push_back(Number(end));
  }
  if (!has_symbol && is_exact) return One(node.Call("arange", std::move(ends), {{"dtype", *type->dtype}}));
  if (has_fraction) return RangeByData(node, *type->dtype);
  for (size_t i : {0, 1, 2}) node.CheckedFormula(i);
  INGOT_ASSIGN_OR_RETURN(const Expr steps, node.Bind("arange", std::move(whole), {{"dtype", DataType::Int(64)}}));
  return One(CastTo(node, steps, *type->dtype));
}

constexpr OnnxOpRow kIndexingRows[] = {
    {"ArgMax", nullptr, Arg<kArgMax>},
    {"ArgMin", nullptr, Arg<kArgMin>},
    {"CumProd", nullptr, Scan<kCumProd>},
    {"CumSum", nullptr, Scan<kCumSum>},
    {"Gather", nullptr, Gather},
    {"GatherElements", nullptr, GatherElements},
    {"GatherND", nullptr, GatherNd},
    {"OneHot", nullptr, OneHot},
    {"Range", nullptr, Range},
    {"ReverseSequence", nullptr, ReverseSequence},
    {"Scatter", nullptr, ScatterElements},
    {"ScatterElements", nullptr, ScatterElements},
    {"ScatterND", nullptr, ScatterNd},
    {"TopK", nullptr, TopK},
    {"Trilu", nullptr, Trilu},
};

}  // namespace

std::span<const OnnxOpRow> IndexingOnnxOps() { return kIndexingRows; }

}  // namespace ingot::importer
