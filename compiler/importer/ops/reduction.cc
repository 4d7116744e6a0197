// Reductions over axes, and pools over all spatial axes.
#include "compiler/importer/ops/families.h"

#include "compiler/importer/ops/util.h"

namespace ingot::importer {
namespace {

// Axes are an attribute, or an input from opset 18 on (ReduceSum: 13). Without any, all axes are reduced, or none with
// noop_with_empty_axes; the steps before and after the reduction are done nevertheless.
Result<ir::Attrs> ReduceAttrs(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, AxesOf(node));
  INGOT_ASSIGN_OR_RETURN(const int64_t keep, node.Int("keepdims", 1));
  INGOT_ASSIGN_OR_RETURN(const int64_t noop, node.Int("noop_with_empty_axes", 0));
  const AttrValue axis = axes.empty() && noop == 0 ? AttrValue() : AttrValue::Ints(axes);
  return ir::Attrs{{"axis", axis}, {"keepdims", keep != 0}};
}
bool ReducesNothing(const ir::Attrs& attrs) {
  const AttrValue* axis = attrs.Find("axis");
  return !axis->is_none() && attrs.GetInts("axis").empty();
}

// Max and min of bool are computed on 0 and 1.
template <const auto& kRow>
Outputs Reduce(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::Attrs attrs, ReduceAttrs(node));
  if (ReducesNothing(attrs)) return std::vector<Expr>{std::move(x)};
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  if (!type->dtype->is_bool()) return One(node.Call(kRow, {x}, attrs));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("astype", {x}, {{"dtype", DataType::UInt(8)}}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind(kRow, {x}, attrs));
  return One(node.Call("astype", {x}, {{"dtype", DataType::Bool()}}));
}
constexpr char kMax[] = "max";
constexpr char kMean[] = "mean";
constexpr char kMin[] = "min";
constexpr char kProd[] = "prod";
constexpr char kSum[] = "sum";

// after(sum(before(x))); either may be "". Roots and logarithms of integers are computed in float64.
template <const auto& kBefore, const auto& kAfter>
Outputs ReduceBetween(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::Attrs attrs, ReduceAttrs(node));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const std::string_view before = kBefore;
  const std::string_view after = kAfter;
  const DataType dtype = *type->dtype;
  const bool through_float = !after.empty() && !dtype.is_floating();
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, through_float ? DataType::Float(64) : StepType(dtype)));
  if (!before.empty()) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind(before, {x}));
  }
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("sum", {x}, attrs));
  if (!after.empty()) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind(after, {x}));
  }
  return One(CastTo(node, x, dtype));
}
constexpr char kNothing[] = "";
constexpr char kAbs[] = "abs";
constexpr char kSquare[] = "square";
constexpr char kLog[] = "log";
constexpr char kSqrt[] = "sqrt";

Outputs ReduceLogSumExp(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::Attrs attrs, ReduceAttrs(node));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  const DataType dtype = *type->dtype;
  const DataType wide = dtype.is_floating() ? StepType(dtype) : DataType::Float(64);
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, wide));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, node.Bind("log_sum_exp", {x}, attrs));
  return One(CastTo(node, sum, dtype));
}

// The attributes of a reduction over all spatial axes, which stay with extent 1.
Result<ir::Attrs> SpatialAttrs(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> in, StaticRankDims(node, 0));
  if (in.size() < 3) return node.Invalid("expected a rank of 3 or more, got " + std::to_string(in.size()));
  std::vector<int64_t> axes;
  for (size_t i = 2; i < in.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return ir::Attrs{{"axis", AttrValue::Ints(axes)}, {"keepdims", true}};
}
template <const auto& kRow>
Outputs GlobalPool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::Attrs attrs, SpatialAttrs(node));
  return One(node.Call(kRow, {x}, attrs));
}

Outputs GlobalLpPool(const NodeImporter& node) {
  INGOT_ASSIGN_OR_RETURN(Expr x, node.Input(0));
  INGOT_ASSIGN_OR_RETURN(const ir::Attrs attrs, SpatialAttrs(node));
  INGOT_ASSIGN_OR_RETURN(const ir::TensorTypeNode* type, node.InputType(0));
  INGOT_ASSIGN_OR_RETURN(const int64_t p, node.Int("p", 2));
  if (p < 1) return node.Invalid("p must be positive, got " + std::to_string(p));
  const DataType dtype = *type->dtype;
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("abs", {x}));
  if (p == 1) return One(node.Call("sum", {x}, attrs));
  INGOT_ASSIGN_OR_RETURN(x, CastTo(node, x, StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(const Expr exponent, node.Scalar(p, StepType(dtype)));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("power", {x, exponent}));
  INGOT_ASSIGN_OR_RETURN(x, node.Bind("sum", {x}, attrs));
  if (p == 2) {
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("sqrt", {x}));
  } else {
    INGOT_ASSIGN_OR_RETURN(const Expr root, node.Scalar(1.0 / static_cast<double>(p), StepType(dtype)));
    INGOT_ASSIGN_OR_RETURN(x, node.Bind("power", {x, root}));
  }
  return One(CastTo(node, x, dtype));
}

constexpr OnnxOpRow kReductionRows[] = {
    {"GlobalAveragePool", nullptr, GlobalPool<kMean>},
    {"GlobalLpPool", nullptr, GlobalLpPool},
    {"GlobalMaxPool", nullptr, GlobalPool<kMax>},
    {"ReduceL1", nullptr, ReduceBetween<kAbs, kNothing>},
    {"ReduceL2", nullptr, ReduceBetween<kSquare, kSqrt>},
    {"ReduceLogSum", nullptr, ReduceBetween<kNothing, kLog>},
    {"ReduceLogSumExp", nullptr, ReduceLogSumExp},
    {"ReduceMax", nullptr, Reduce<kMax>},
    {"ReduceMean", nullptr, Reduce<kMean>},
    {"ReduceMin", nullptr, Reduce<kMin>},
    {"ReduceProd", nullptr, Reduce<kProd>},
    {"ReduceSum", nullptr, Reduce<kSum>},
    {"ReduceSumSquare", nullptr, ReduceBetween<kSquare, kNothing>},
};

}  // namespace

std::span<const OnnxOpRow> ReductionOnnxOps() { return kReductionRows; }

}  // namespace ingot::importer
