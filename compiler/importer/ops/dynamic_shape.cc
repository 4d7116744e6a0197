// Operators with dynamic (data-dependent) output shapes. Each result dimension that data decide gets a symbol of its
// own, which a match_cast binds, so that the operators behind it have shapes; if every input is a constant, so is the
// result.
#include <algorithm>
#include <cstring>
#include <limits>

#include "compiler/arith/analyzer.h"
#include "compiler/importer/ops/families.h"
#include "compiler/importer/ops/util.h"
#include "compiler/op/reference.h"

namespace ingot::importer {
namespace {

Expr Flag(bool value) { return ir::Make<ir::PrimValueNode>(ir::BoolImm(value)); }

// The largest constants of which a result is one, in bytes: those that are only counted, those that are sorted, and
// those of which each is compared with all others.
constexpr size_t kCounted = size_t{1} << 22, kSorted = size_t{1} << 20, kCompared = size_t{1} << 14;

// Returns the results of a call over constants; nothing if a tensor is no constant, or is larger.
Result<std::optional<std::vector<Expr>>> Evaluated(const ir::Call& call, size_t most_bytes) {
  std::vector<op::ReferenceTensor> inputs;
  for (const Expr& input : op::InputTensors(call)) {
    const auto* constant = ir::As<ir::ConstantNode>(input);
    if (constant == nullptr || constant->data->bytes().size() > most_bytes) return std::optional<std::vector<Expr>>();
    const ir::ConstantData& data = *constant->data;
    inputs.push_back(op::UnpackReference(data.dtype(), data.dims(), data.bytes()));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<op::ReferenceTensor> results, op::RowOf(call)->reference(call, inputs));
  std::vector<Expr> constants;
  for (const op::ReferenceTensor& result : results) {
    constants.push_back(
        ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(result.dtype, result.dims, op::PackReference(result))));
  }
  return std::optional(std::move(constants));
}

// Returns the results of a call whose output shape is dynamic (the operator has DataExtents).
Outputs DynamicShapeCall(const NodeImporter& node, const char* row, std::vector<Expr> args, size_t most_bytes,
                         ir::Attrs attrs = {}) {
  INGOT_ASSIGN_OR_RETURN(const Expr value, node.Call(row, std::move(args), std::move(attrs)));
  const ir::Call call = ir::Downcast<ir::CallNode>(value);
  INGOT_ASSIGN_OR_RETURN(std::optional<std::vector<Expr>> constants, Evaluated(call, most_bytes));
  if (constants) return *std::move(constants);
  const op::DataExtents& rule = op::RowOf(call)->extents;
  std::vector<PrimExpr> extents;
  for (int i = 0; i < rule.count; ++i) extents.push_back(ir::MakePrimVar("num"));
  INGOT_ASSIGN_OR_RETURN(const ir::Type type, rule.type(call, extents));
  const Expr var = node.BindValue(value, "counted");
  const auto* tuple = ir::As<ir::TupleTypeNode>(type);
  if (tuple == nullptr) return std::vector<Expr>{node.Match(var, type)};
  std::vector<Expr> results;
  for (size_t i = 0; i < tuple->fields.size(); ++i) {
    const ir::Type& known = ir::As<ir::TupleTypeNode>(call->type)->fields[i];
    const Expr field =
        node.BindValue(ir::Make<ir::TupleGetItemNode>(var, static_cast<int64_t>(i), known), "counted_field");
    const bool has_dims = ir::As<ir::TensorTypeNode>(known)->dims.has_value();
    results.push_back(has_dims ? field : node.Match(field, tuple->fields[i]));
  }
  return results;
}

Outputs NonZero(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  return DynamicShapeCall(node, "nonzero", {x}, kCounted);
}

// Returns the beginning of a vector: at most as many elements as there are to choose from.
Result<Expr> AtMost(const NodeImporter& node, Expr x, const PrimExpr& most) {
  const auto* type = ir::As<ir::TensorTypeNode>(x->type);
  if (arith::Analyzer().ProveLessEqual((*type->dims)[0], most)) return x;
  const auto tuple = [](const PrimExpr& value) {
    const Expr field = ir::Make<ir::PrimValueNode>(value);
    return Expr(ir::Make<ir::TupleNode>(std::vector<Expr>{field},
                                        ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{field->type})));
  };
  return node.Bind("strided_slice", {std::move(x), tuple(ir::Int64(0)), tuple(ir::Int64(0)), tuple(most)});
}

// The elements, or slices along an axis, where the condition holds. A condition may be shorter than the axis; its
// elements beyond the axis are ignored.
Outputs Compress(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(Expr condition, node.Input(1));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> chosen, StaticRankDims(node, 1));
  if (chosen.size() != 1) return node.Invalid("the condition: expected rank 1");
  int64_t axis = 0;
  PrimExpr extent = Product(in);
  if (node.HasAttr("axis")) {
    INGOT_ASSIGN_OR_RETURN(axis, node.Int("axis", 0));
    INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size())));
    extent = in[static_cast<size_t>(axis)];
  } else {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("reshape", {x, ShapeOf({extent})}));
  }
  INGOT_ASSIGN_OR_RETURN(condition, AtMost(node, std::move(condition), extent));
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> places, DynamicShapeCall(node, "nonzero", {condition}, kCounted));
  const auto* type = ir::As<ir::TensorTypeNode>(places[0]->type);
  INGOT_ASSIGN_OR_RETURN(Expr flat, node.Bind("reshape", {places[0], ShapeOf({(*type->dims)[1]})}));
  return One(node.Call("take", {x, flat}, {{"axis", axis}}));
}

Outputs Unique(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  INGOT_ASSIGN_OR_RETURN(const int64_t sorted, node.Int("sorted", 1));
  const std::vector<std::string>& names = node.node().outputs;
  const auto wants = [&](size_t i) { return i < names.size() && !names[i].empty(); };
  std::vector<Expr> args = {x, Flag(sorted != 0), Flag(wants(1)), Flag(wants(2)), Flag(wants(3))};
  if (node.HasAttr("axis")) {
    INGOT_ASSIGN_OR_RETURN(int64_t axis, node.Int("axis", 0));
    INGOT_ASSIGN_OR_RETURN(axis, NormaliseAxis(node, axis, static_cast<int64_t>(in.size())));
    args.push_back(ir::Make<ir::PrimValueNode>(ir::Int64(axis)));
  }
  INGOT_ASSIGN_OR_RETURN(const std::vector<Expr> results, DynamicShapeCall(node, "unique", std::move(args), kSorted));
  // Outputs without a name are not computed; they keep their places.
  std::vector<Expr> outputs = {results[0]};
  size_t next = 1;
  for (size_t i : {1, 2, 3}) outputs.push_back(wants(i) ? results[next++] : results[0]);
  return outputs;
}

// Converts boxes given by centre and size to opposite corners. The order of the axes does not matter to overlaps. A size
// below 0 is no distance between corners: nothing overlaps with such a box.
Result<Expr> Corners(const NodeImporter& node, const Expr& boxes) {
  const auto part = [&](int64_t begin) {
    const auto ints = [](int64_t value) {
      const Expr number = ir::Make<ir::PrimValueNode>(ir::Int64(value));
      return ir::Make<ir::TupleNode>(std::vector<Expr>{number},
                                     ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{number->type}));
    };
    return node.Bind("strided_slice", {boxes, ints(2), ints(begin), ints(begin + 2), ints(1)});
  };
  INGOT_ASSIGN_OR_RETURN(const Expr centre, part(0));
  INGOT_ASSIGN_OR_RETURN(const Expr size, part(2));
  INGOT_ASSIGN_OR_RETURN(const Expr half, node.Scalar(0.5, *ir::As<ir::TensorTypeNode>(boxes->type)->dtype));
  INGOT_ASSIGN_OR_RETURN(const Expr reach, node.Bind("multiply", {size, half}));
  INGOT_ASSIGN_OR_RETURN(const Expr low, node.Bind("subtract", {centre, reach}));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, node.Bind("add", {centre, reach}));
  INGOT_ASSIGN_OR_RETURN(const Expr high, node.Bind("maximum", {low, sum}));
  const Expr corners = ir::Make<ir::TupleNode>(
      std::vector<Expr>{low, high}, ir::Make<ir::TupleTypeNode>(std::vector<ir::Type>{low->type, high->type}));
  return node.Bind("concat", {corners}, {{"axis", int64_t{2}}});
}

// Without a maximum number no box is kept; without a score threshold every box is a candidate.
Outputs NonMaxSuppression(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr boxes, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const Expr scores, node.Input(1));
  INGOT_RETURN_IF_ERROR(node.InputType(0).status());
  INGOT_ASSIGN_OR_RETURN(const int64_t by_centre, node.Int("center_point_box", 0));
  if (by_centre != 0) {
    INGOT_ASSIGN_OR_RETURN(boxes, Corners(node, boxes));
  }
  std::vector<Expr> args = {boxes, scores};
  for (size_t i = 2; i < 5; ++i) {
    if (node.HasInput(i)) {
      INGOT_ASSIGN_OR_RETURN(Expr arg, node.Input(i));
      args.push_back(std::move(arg));
    } else if (i < 4) {
      INGOT_ASSIGN_OR_RETURN(Expr zero, node.Scalar(0, i == 2 ? DataType::Int(64) : DataType::Float(32)));
      args.push_back(std::move(zero));
    } else {  // a threshold without elements is none
      args.push_back(ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(DataType::Float(32), {0}, {})));
    }
  }
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results,
                         DynamicShapeCall(node, "vision.all_class_non_max_suppression", std::move(args), kCompared));
  results.resize(1);
  return results;
}

constexpr OnnxOpRow kDynamicShapeRows[] = {
    {"Compress", nullptr, Compress},
    {"NonMaxSuppression", nullptr, NonMaxSuppression},
    {"NonZero", nullptr, NonZero},
    {"Unique", nullptr, Unique},
};

}  // namespace

std::span<const OnnxOpRow> DynamicShapeOnnxOps() { return kDynamicShapeRows; }

}  // namespace ingot::importer
