// ConstantFolder::FoldTir: evaluates a call_tir over constants in the tensor-level interpreter, if the function only
// moves elements or does plain arithmetic: that gives the same bytes on every host, which a host's exp does not.
#include <algorithm>
#include <optional>

#include "compiler/interp/interpreter.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/constant_folder.h"
#include "compiler/transform/graph_util.h"
#include "runtime/tensor.h"

namespace ingot::transform {

using ir::As;

namespace {

// Counts the stores that a function runs; nothing if the number is unknown, or if results may differ between hosts.
class StepCounter : public ir::StmtVisitor {
 public:
  std::optional<int64_t> Count(const ir::PrimFunc& function) {
    VisitStmt(function->body);
    return is_known_ ? std::optional(steps_) : std::nullopt;
  }

 protected:
  using StmtVisitor::Visit;
  void Visit(const ir::BufferStoreNode& store) override {
    is_known_ &= !__builtin_add_overflow(steps_, iterations_, &steps_);
    StmtVisitor::Visit(store);
  }
  void Visit(const ir::ForNode& loop) override {
    const auto extent = ir::AsConstInt(loop.extent);
    const int64_t outside = iterations_;
    is_known_ &= extent && !__builtin_mul_overflow(iterations_, *extent, &iterations_);
    if (is_known_) StmtVisitor::Visit(loop);
    iterations_ = outside;
  }
  void Visit(const ir::WhileNode&) override { is_known_ = false; }
  void Visit(const ir::EvaluateNode& evaluate) override { is_known_ &= ir::AsConstInt(evaluate.value).has_value(); }
  void Visit(const ir::PrimCallNode& call) override {
    is_known_ &= call.op == ir::Intrinsic::kIfThenElse;
    StmtVisitor::Visit(call);
  }

 private:
  int64_t iterations_ = 1, steps_ = 0;
  bool is_known_ = true;
};

}  // namespace

ConstantFolder::Outcome ConstantFolder::FoldTir(const ir::IRModule& module, const ir::Call& call) {
  const std::optional<CallTir> tir = AsCallTir(call);
  if (UsesKeptWeights(call)) return {};
  if (!tir || tir->tir_vars != nullptr || tir->results.size() != 1 || tir->args.empty()) return {};
  for (const ir::Expr& arg : tir->args) {
    if (As<ir::ConstantNode>(arg) == nullptr) return {};
  }
  const ir::PrimFunc function = module.FindPrimFunc(tir->callee->name);
  const auto* type = As<ir::TensorTypeNode>(tir->results[0]);
  if (function == nullptr || type == nullptr || !type->dtype) return {};
  const std::optional<std::vector<int64_t>> dims = KnownDims(*type);
  const std::optional<int64_t> steps = dims ? StepCounter().Count(function) : std::nullopt;
  if (!steps) return {nullptr, "\"" + tir->callee->name + "\" does more than move elements and plain arithmetic"};
  if (*steps > options_.fold_max_steps - steps_) {
    return OverBudget("the budget of " + std::to_string(options_.fold_max_steps) + " interpreted steps is used up");
  }
  const Result<int64_t> count = CountElements(*dims);
  if (!count.ok()) return {nullptr, count.status().message()};
  const Result<int64_t> size_bytes = type->dtype->SizeBytes(*count);
  if (!size_bytes.ok() || *size_bytes > options_.fold_max_bytes) {
    return OverBudget("the result is larger than the budget of " + std::to_string(options_.fold_max_bytes) + " bytes");
  }
  std::vector<std::vector<std::byte>> copies;  // copies, since the interpreter takes mutable bytes
  std::vector<interp::HostBuffer> buffers;
  std::string name;
  for (const ir::Expr& arg : tir->args) {
    const auto& constant = *As<ir::ConstantNode>(arg);
    copies.emplace_back(constant.data->bytes().begin(), constant.data->bytes().end());
    buffers.push_back({constant.data->dtype(), constant.data->dims(), copies.back()});
    if (name.empty()) name = constant.name;
  }
  std::vector<std::byte> result(static_cast<size_t>(*size_bytes));
  buffers.push_back({*type->dtype, *dims, result, /*initialized=*/false});
  interp::InterpretOptions interpret;
  interpret.check_races = false;
  const Status status = interp::Interpret(function, buffers, {}, interpret);
  if (!status.ok()) return {nullptr, status.message()};
  steps_ += *steps;
  return {
      ir::Make<ir::ConstantNode>(ir::ConstantData::FromBytes(*type->dtype, *dims, std::move(result)), std::move(name)),
      ""};
}

}  // namespace ingot::transform
