// Folds calls of operators: checks that all arguments are constants, estimates size and cost against the budgets, and
// runs the operator's host routine. Calls of tensor functions are in fold_tensor_function.cc.
#include "compiler/transform/constant_folder.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "compiler/ir/type.h"
#include "compiler/op/fold.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "runtime/tensor.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

// A host routine has eight bytes per number, of operands and result: as many as two tensors of float32 that are as large
// as the budget allows.
constexpr int kScratchPerByte = 4;
// All results of one run, as far as they are larger than what they are made of.
constexpr int kGrowthPerByte = 2;

bool IsConstantArg(const Expr& arg) {
  if (As<ir::ConstantNode>(arg) != nullptr) return true;
  if (const auto* shape = As<ir::ShapeExprNode>(arg)) {
    return std::all_of(shape->dims.begin(), shape->dims.end(),
                       [](const ir::PrimExpr& dim) { return ir::AsConstInt(dim).has_value(); });
  }
  if (const auto* scalar = As<ir::PrimValueNode>(arg)) {
    return scalar->value->kind == ir::PrimKind::kIntImm || scalar->value->kind == ir::PrimKind::kFloatImm;
  }
  if (const auto* tuple = As<ir::TupleNode>(arg)) {
    return std::all_of(tuple->fields.begin(), tuple->fields.end(), IsConstantArg);
  }
  return As<ir::StringValueNode>(arg) != nullptr || As<ir::DataTypeValueNode>(arg) != nullptr;
}

// Collects the tensors among the arguments, in order; tuples are flattened.
void CollectConstants(const Expr& arg, std::vector<const ir::ConstantNode*>& out) {
  if (const auto* constant = As<ir::ConstantNode>(arg)) out.push_back(constant);
  if (const auto* tuple = As<ir::TupleNode>(arg)) {
    for (const Expr& field : tuple->fields) CollectConstants(field, out);
  }
}

// Returns nothing if the dims are not all constants, or their product overflows.
std::optional<int64_t> CountOf(const ir::TensorTypeNode& type) {
  const std::optional<std::vector<int64_t>> dims = KnownDims(type);
  if (!dims.has_value()) return std::nullopt;
  Result<int64_t> count = CountElements(*dims);
  if (!count.ok()) return std::nullopt;
  return *count;
}

// Returns the bytes of these constants; of one that occurs repeatedly, once.
int64_t BytesOf(const std::vector<const ir::ConstantNode*>& constants) {
  std::unordered_set<const ir::ConstantData*> counted;
  int64_t size_bytes = 0;
  for (const ir::ConstantNode* constant : constants) {
    if (counted.insert(constant->data.get()).second) size_bytes += std::ssize(constant->data->bytes());
  }
  return size_bytes;
}

// The cost of evaluating the call: its number of elements, or the cost of its cheapest implementation if that is more.
double OperationsOf(const ir::Call& call, const op::OpRow& row, int64_t result_elements,
                    const std::vector<const ir::ConstantNode*>& inputs) {
  double operations = static_cast<double>(result_elements);
  for (const ir::ConstantNode* input : inputs) operations += static_cast<double>(input->data->num_elements());
  const Target target;
  std::optional<double> cheapest;
  for (const op::Implementation& implementation : row.implementations) {
    if (implementation.cost == nullptr) continue;
    if (implementation.predicate != nullptr && !implementation.predicate(call, target)) continue;
    const double cost = implementation.cost(call, target);
    cheapest = cheapest.has_value() ? std::min(*cheapest, cost) : cost;
  }
  return std::max(operations, cheapest.value_or(0));
}

}  // namespace

std::optional<std::vector<int64_t>> KnownDims(const ir::TensorTypeNode& type) {
  if (!type.dims.has_value()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const ir::PrimExpr& dim : *type.dims) {
    const auto value = ir::AsConstInt(dim);
    if (!value) return std::nullopt;
    dims.push_back(*value);
  }
  return dims;
}

ConstantFolder::Outcome OverBudget(std::string reason) { return {nullptr, std::move(reason), /*over_budget=*/true}; }

void NoteLeft(const PassContext& context, const std::string& what, const ConstantFolder::Outcome& outcome) {
  const auto& note = outcome.over_budget ? context.log : context.detail;
  if (note && !outcome.reason.empty()) note(what + ": " + outcome.reason);
}

bool IsConstantCall(const ir::Call& call) { return std::all_of(call->args.begin(), call->args.end(), IsConstantArg); }

bool ConstantFolder::UsesKeptWeights(const ir::Call& call) const {
  std::vector<const ir::ConstantNode*> constants;
  for (const Expr& arg : call->args) CollectConstants(arg, constants);
  return options_.keep_prepare && std::any_of(constants.begin(), constants.end(),
                                              [](const ir::ConstantNode* constant) { return !constant->name.empty(); });
}

ConstantFolder::Outcome ConstantFolder::Fold(const ir::Call& call) {
  if (UsesKeptWeights(call)) return {};
  const op::OpRow* row = op::RowOf(call);
  if (row == nullptr || row->effect != op::Effect::kPure || !IsConstantCall(call)) return {};
  if (row->fold == nullptr) return {nullptr, "there is no host routine for " + std::string(row->name)};
  const auto* type = As<ir::TensorTypeNode>(call->type);
  if (type == nullptr || !type->dtype.has_value()) return {nullptr, "the result is no tensor of known type"};
  const std::optional<int64_t> elements = CountOf(*type);
  if (!elements.has_value()) return {nullptr, "the result's size is not known or overflows"};
  const Result<int64_t> size_bytes = type->dtype->SizeBytes(*elements);
  std::vector<const ir::ConstantNode*> constants;
  for (const Expr& arg : call->args) CollectConstants(arg, constants);
  if (!size_bytes.ok()) return OverBudget("the result's size overflows");
  // What is as large as that of which it is made, but for some padding, may have any size: weights in another order.
  const int64_t growth = std::max(*size_bytes - BytesOf(constants), int64_t{0});
  if (*size_bytes > options_.fold_max_bytes && growth > *size_bytes / 16) {
    return OverBudget("the result is larger than the budget of " + std::to_string(options_.fold_max_bytes) + " bytes");
  }
  if (row->prepare == nullptr || row->fold == op::FoldByReference) {
    // Rows without a builtin are folded by the reference evaluation.
    double numbers = static_cast<double>(*elements);
    for (const ir::ConstantNode* constant : constants) numbers += static_cast<double>(constant->data->num_elements());
    if (numbers * sizeof(double) > kScratchPerByte * static_cast<double>(options_.fold_max_bytes)) {
      return OverBudget("the host routine's numbers take more than " + std::to_string(kScratchPerByte) +
                        " times the budget of " + std::to_string(options_.fold_max_bytes) + " bytes");
    }
  }
  if (growth > kGrowthPerByte * options_.fold_max_bytes - growth_) {
    return OverBudget("the results are together larger than " + std::to_string(kGrowthPerByte) +
                      " times the budget of " + std::to_string(options_.fold_max_bytes) + " bytes");
  }
  const double operations = OperationsOf(call, *row, *elements, constants);
  if (operations > static_cast<double>(options_.fold_max_operations - operations_)) {
    return OverBudget("the budget of " + std::to_string(options_.fold_max_operations) + " operations is used up");
  }
  std::vector<std::shared_ptr<const ir::ConstantData>> inputs;
  std::string name;  // name of the first named input: the result counts as that parameter
  for (const ir::ConstantNode* constant : constants) {
    inputs.push_back(constant->data);
    if (name.empty()) name = constant->name;
  }
  Result<std::shared_ptr<const ir::ConstantData>> data = row->fold(call, inputs);
  if (!data.ok()) return {nullptr, data.status().message()};
  operations_ += static_cast<int64_t>(operations);
  growth_ += growth;
  return {ir::Make<ir::ConstantNode>(*std::move(data), std::move(name)), ""};
}

}  // namespace ingot::transform
