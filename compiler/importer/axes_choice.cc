#include "compiler/importer/axes_choice.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/importer/build.h"
#include "compiler/importer/ops/util.h"
#include "runtime/tensor.h"

namespace ingot::importer {
namespace {

// How an operator takes its axes.
struct AxesInput {
  std::string_view op_type;
  size_t input;
  bool is_ordered;            // other inputs belong to each axis; otherwise the axes are a set
  bool is_of_result = false;  // they count the result's dims, which are the data's and one for each axis
};
constexpr AxesInput kAxesInputs[] = {
    {"CumProd", 1, true},       {"CumSum", 1, true},           {"DFT", 2, true},
    {"Pad", 3, true},           {"ReduceL1", 1, false},        {"ReduceL2", 1, false},
    {"ReduceLogSum", 1, false}, {"ReduceLogSumExp", 1, false}, {"ReduceMax", 1, false},
    {"ReduceMean", 1, false},   {"ReduceMin", 1, false},       {"ReduceProd", 1, false},
    {"ReduceSum", 1, false},    {"ReduceSumSquare", 1, false}, {"Slice", 3, true},
    {"Squeeze", 1, false},      {"Unsqueeze", 1, false, true},
};
constexpr size_t kMaxWays = 64;

const AxesInput* FindAxesInput(const OnnxNode& node) {
  const auto* row = std::ranges::find(kAxesInputs, node.op_type, &AxesInput::op_type);
  return node.domain.empty() && row != std::end(kAxesInputs) ? row : nullptr;
}

// What an axis adds to the code at its place among the axes. A set is a bit for each axis, which sums of equal bits are
// not; a list is a number of a digit for each place, which is 0 for no axis.
int64_t CodeOf(int64_t axis, size_t place, int64_t rank, bool is_ordered) {
  if (!is_ordered) return int64_t{1} << axis;
  int64_t digit = axis + 1;
  for (size_t i = 0; i < place; ++i) digit *= rank + 1;
  return digit;
}

// Returns the code of the axes that the input has, as it is read when the model runs; no way has it if one of them is
// out of range, or if two are equal. `own`: the input's dims. Where the number of axes is not known, the code has it, too.
Result<PrimExpr> ReadCode(BindingBuilder& builder, const NodeImporter& node, const AxesInput& takes,
                          const std::vector<PrimExpr>& own, int64_t rank) {
  const DataType index = DataType::Int(64);
  const PrimExpr count = own.empty() ? ir::Int64(1) : own[0];
  std::vector<int64_t> names, codes;  // what names an axis, and what it adds, at each place
  for (int64_t axis = -rank; axis < rank; ++axis) names.push_back(axis);
  const auto places = static_cast<size_t>(takes.is_ordered ? *ir::AsConstInt(count) : 1);
  for (size_t place = 0; place < places; ++place) {
    for (int64_t axis : names) codes.push_back(CodeOf(axis < 0 ? axis + rank : axis, place, rank, takes.is_ordered));
  }
  INGOT_ASSIGN_OR_RETURN(Expr axes, node.Input(takes.input));
  INGOT_ASSIGN_OR_RETURN(axes, CastTo(node, std::move(axes), index));
  INGOT_ASSIGN_OR_RETURN(axes, node.Bind("reshape", {axes, ShapeOf({count, ir::Int64(1)})}));
  INGOT_ASSIGN_OR_RETURN(const Expr is_named, node.Bind("equal", {axes, ConstantOf(index, {2 * rank}, names)}));
  INGOT_ASSIGN_OR_RETURN(const Expr none, node.Scalar(0, index));
  const Expr adds = ConstantOf(index, {static_cast<int64_t>(places), 2 * rank}, codes);
  INGOT_ASSIGN_OR_RETURN(const Expr added, node.Bind("where", {is_named, adds, none}));
  INGOT_ASSIGN_OR_RETURN(const Expr sum, node.Bind("sum", {added}));
  INGOT_ASSIGN_OR_RETURN(const PrimExpr code, builder.ReadInteger(sum, "axes", node.span()));
  return ir::AsConstInt(count) ? code : code + count * ir::Int64(int64_t{1} << rank);
}

}  // namespace

bool AxesChoice::Takes(const NodeImporter& node) {
  const AxesInput* axes = FindAxesInput(node.node());
  return axes != nullptr && node.HasInput(axes->input) && !node.IsConstant(axes->input);
}

Result<ImportedBranch> AxesChoice::ImportWay(const OnnxOpRow& row, const NodeImporter& node,
                                             const std::vector<ImportedValue*>& inputs, size_t input, const Way& way,
                                             const PrimExpr& code) {
  const auto* type = ir::As<ir::TensorTypeNode>(inputs[input]->type);
  ShapeValue axes{*type->dtype, {}, {}};
  if (type->rank == 1) axes.dims.push_back(std::ssize(way.axes));
  for (int64_t axis : way.axes) axes.elements.push_back(ir::Int64(axis));
  const ir::Type axes_type = axes.Type();
  ImportedValue constant{.expr = nullptr, .type = axes_type, .known = std::move(axes)};
  std::vector<ImportedValue*> values = inputs;
  // The tensor of a value that is known by its elements is made in the branch that needs it, and is none of the others'.
  std::vector<ImportedValue> own(inputs.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr || values[i]->expr != nullptr) continue;
    own[i] = *values[i];
    values[i] = &own[i];
  }
  values[input] = &constant;

  BindingBuilder::Nested nested(builder_);
  if (code) {
    builder_.Match(ShapeOf({code}), ir::Make<ir::ShapeTypeNode>(std::vector<PrimExpr>{ir::Int64(way.code)}), "axes",
                   node.span());
  }
  const NodeImporter of_way(node.node(), node.opset(), std::move(values), node.span(), builder_.bindings(), nullptr);
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results, ImportOnnxNode(row, of_way));
  for (Expr& result : results) result = builder_.Bind(std::move(result), "of_axes", node.span());
  return ImportedBranch{nested.Take(), std::move(results)};
}

Result<ImportedBranch> AxesChoice::Choose(const NodeImporter& node, const PrimExpr& code, std::span<const Way> ways,
                                          std::span<ImportedBranch> branches) {
  if (ways.size() == 1) return std::move(branches[0]);
  const size_t half = ways.size() / 2;
  std::vector<OnnxValueInfo> outputs;  // a node need not name its outputs
  for (const std::string& name : node.node().outputs) outputs.push_back({.name = name});
  outputs.resize(std::max(outputs.size(), branches[0].results.size()), {.name = "of_axes"});
  BindingBuilder::Nested nested(builder_);
  INGOT_ASSIGN_OR_RETURN(ImportedBranch low, Choose(node, code, ways.first(half), branches.first(half)));
  INGOT_ASSIGN_OR_RETURN(ImportedBranch high, Choose(node, code, ways.subspan(half), branches.subspan(half)));
  const Expr is_low = Number(code < ir::Int64(ways[half].code));
  INGOT_ASSIGN_OR_RETURN(std::vector<Expr> results,
                         control_flow_.Join(node, is_low, std::move(low), std::move(high), outputs));
  return ImportedBranch{nested.Take(), std::move(results)};
}

namespace {

// Adds the ways to take so many of the axes; false if they are too many.
bool AddWays(int64_t count, int64_t rank, bool is_ordered, std::vector<int64_t>& axes,
             std::vector<std::vector<int64_t>>& ways) {
  if (std::ssize(axes) == count) {
    ways.push_back(axes);
    return ways.size() <= kMaxWays;
  }
  for (int64_t axis = is_ordered || axes.empty() ? 0 : axes.back() + 1; axis < rank; ++axis) {
    if (std::ranges::find(axes, axis) != axes.end()) continue;
    axes.push_back(axis);
    if (!AddWays(count, rank, is_ordered, axes, ways)) return false;
    axes.pop_back();
  }
  return true;
}

}  // namespace

Result<std::vector<Expr>> AxesChoice::Import(const OnnxOpRow& row, const NodeImporter& node,
                                             const std::vector<ImportedValue*>& inputs) {
  const AxesInput& takes = *FindAxesInput(node.node());
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> own, StaticRankDims(node, takes.input));
  INGOT_ASSIGN_OR_RETURN(const std::vector<PrimExpr> data, StaticRankDims(node, 0));
  const auto* type = ir::As<ir::TensorTypeNode>(inputs[takes.input]->type);
  if (own.size() > 1 || !type->dtype->is_int()) return node.Invalid("the axes: expected integers of rank 0 or 1");
  const std::optional<int64_t> count = own.empty() ? 1 : ir::AsConstInt(own[0]);
  INGOT_ASSIGN_OR_RETURN(const int64_t keeps, node.Int("keepdims", 1));
  const bool has_known_rank = node.node().op_type.starts_with("Reduce") && keeps != 0;
  if (!count && !has_known_rank) return node.Unsupported("axes that are no constants, of an unknown number");
  const int64_t rank = std::ssize(data) + (takes.is_of_result ? *count : 0);
  if (count && *count > rank) return node.Invalid("more axes than dims");
  if (rank > kMaxRank) return node.Unsupported("a rank of " + std::to_string(rank));
  std::vector<std::vector<int64_t>> lists;
  std::vector<int64_t> list;
  bool are_few = true;
  for (int64_t n = count.value_or(0); n <= count.value_or(rank) && are_few; ++n) {
    list.clear();
    are_few = AddWays(n, rank, takes.is_ordered, list, lists);
  }
  if (!are_few) return node.Unsupported("axes that are no constants, in more than 64 ways");
  INGOT_RETURN_IF_ERROR(expansion_.Add(*node.span().operation, lists.size()));
  std::vector<Way> ways;
  for (std::vector<int64_t>& axes : lists) {
    int64_t code = count ? 0 : std::ssize(axes) << rank;
    for (size_t i = 0; i < axes.size(); ++i) code += CodeOf(axes[i], i, rank, takes.is_ordered);
    ways.push_back({std::move(axes), code});
  }
  std::ranges::sort(ways, {}, &Way::code);

  PrimExpr code;  // null: there is one way, and nothing to read
  if (!count || *count > 0) {
    INGOT_ASSIGN_OR_RETURN(code, ReadCode(builder_, node, takes, own, rank));
  }
  // A way that the node cannot take, such as one that squeezes an axis of length 3, is left out; a call with these axes
  // is refused when it runs.
  std::vector<Way> possible;
  std::vector<ImportedBranch> branches;
  Status impossible;
  for (Way& way : ways) {
    Result<ImportedBranch> branch = ImportWay(row, node, inputs, takes.input, way, code);
    if (!branch.ok() && branch.status().code() != StatusCode::kBadInput) return branch.status();
    if (!branch.ok()) {
      if (impossible.ok()) impossible = branch.status();
      continue;
    }
    possible.push_back(std::move(way));
    branches.push_back(*std::move(branch));
  }
  if (possible.empty()) return impossible;
  INGOT_ASSIGN_OR_RETURN(ImportedBranch chosen, Choose(node, code, possible, branches));
  std::ranges::move(chosen.bindings, std::back_inserter(builder_.bindings()));
  return std::move(chosen.results);
}

}  // namespace ingot::importer
