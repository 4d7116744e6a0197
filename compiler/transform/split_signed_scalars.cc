// split_signed_scalars
//   Before: calls give tensor functions numbers (tir_vars), of which any may be below 0.
//   After:  a number that is not proved to be at least 0 is given as two that are, max(x, 0) and max(-x, 0), whose
//           difference stands in the function wherever the number stood. So every symbol of a tensor function is at least
//           0, which all that is proved of tensor functions takes for granted.
//   After legalising, whose functions take numbers, too; before anything asks for bounds in tensor functions.
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/names.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;
using ir::PrimExpr;

namespace {

// The numbers of a call of a tensor function; null where it gives none.
const ir::ShapeExprNode* NumbersOf(const ir::CallNode& call) {
  const bool is_call = op::IsCallOf(call, op::names::kCallTir) || op::IsCallOf(call, op::names::kCallTirInplace);
  return is_call && call.args.size() > 2 ? As<ir::ShapeExprNode>(call.args[2]) : nullptr;
}

PrimExpr Zero(const PrimExpr& number) { return ir::IntImm(number->dtype, 0); }

// Which of the numbers that a function takes may be below 0 in a call, by the function's name.
using SignedNumbers = std::unordered_map<std::string, std::unordered_set<size_t>>;

class SignedFinder : public ir::ExprVisitor {
 public:
  SignedNumbers found;

 protected:
  using ExprVisitor::Visit;
  void Visit(const ir::CallNode& call) override {
    ExprVisitor::Visit(call);
    const ir::ShapeExprNode* numbers = NumbersOf(call);
    const auto* callee = numbers == nullptr ? nullptr : As<ir::GlobalVarNode>(call.args[0]);
    for (size_t i = 0; callee != nullptr && i < numbers->dims.size(); ++i) {
      if (!analyzer_.ProveLessEqual(Zero(numbers->dims[i]), numbers->dims[i])) found[callee->name].insert(i);
    }
  }

 private:
  arith::Analyzer analyzer_;
};

class CallSplitter : public ir::ExprMutator {
 public:
  explicit CallSplitter(const SignedNumbers& split) : split_(split) {}

 protected:
  using ExprMutator::Mutate;
  Expr Mutate(const ir::Call& call) override {
    const Expr mutated = ExprMutator::Mutate(call);
    const auto* node = As<ir::CallNode>(mutated);
    const ir::ShapeExprNode* numbers = node == nullptr ? nullptr : NumbersOf(*node);
    const auto* callee = numbers == nullptr ? nullptr : As<ir::GlobalVarNode>(node->args[0]);
    const auto found = callee == nullptr ? split_.end() : split_.find(callee->name);
    if (found == split_.end()) return mutated;
    std::vector<PrimExpr> dims;
    for (size_t i = 0; i < numbers->dims.size(); ++i) {
      const PrimExpr& number = numbers->dims[i];
      if (!found->second.contains(i)) {
        dims.push_back(number);
        continue;
      }
      dims.push_back(ir::Max(number, Zero(number)));
      dims.push_back(ir::Max(Zero(number) - number, Zero(number)));
    }
    ir::CallNode copy = *node;
    copy.args[2] = ir::Make<ir::ShapeExprNode>(std::move(dims));
    return ir::Make<ir::CallNode>(std::move(copy));
  }

 private:
  const SignedNumbers& split_;
};

// The function with two parameters for each of these numbers; null where its parameters are not these.
ir::PrimFunc Split(const ir::PrimFunc& function, const std::unordered_set<size_t>& numbers) {
  ir::PrimFuncNode copy = *function;
  copy.params.clear();
  ir::PrimVarMap differences;
  size_t number = 0;
  for (const ir::PrimFuncParam& param : function->params) {
    if (param.buffer != nullptr || !numbers.contains(number++)) {
      copy.params.push_back(param);
      continue;
    }
    const ir::PrimVar above = ir::MakePrimVar(param.var->name + "_above", param.var->dtype);
    const ir::PrimVar below = ir::MakePrimVar(param.var->name + "_below", param.var->dtype);
    copy.params.push_back({above, nullptr});
    copy.params.push_back({below, nullptr});
    differences.emplace(param.var, PrimExpr(above) - PrimExpr(below));
  }
  ir::BufferMap buffers;
  for (ir::PrimFuncParam& param : copy.params) {
    if (param.buffer == nullptr) continue;
    ir::BufferNode buffer = *param.buffer;
    for (PrimExpr& dim : buffer.shape) dim = ir::Substitute(dim, differences);
    for (PrimExpr& stride : buffer.strides) stride = ir::Substitute(stride, differences);
    if (buffer.elem_offset != nullptr) buffer.elem_offset = ir::Substitute(buffer.elem_offset, differences);
    buffers[param.buffer] = ir::Make<ir::BufferNode>(std::move(buffer));
    param.buffer = buffers[param.buffer];
  }
  copy.body = ir::Substitute(function->body, differences, buffers);
  return ir::Make<ir::PrimFuncNode>(std::move(copy));
}

}  // namespace

Result<ir::IRModule> SplitSignedScalars(ir::IRModule module, PassContext&) {
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  SignedFinder finder;
  for (const ir::IRModule::Entry& entry : entries) {
    if (const auto* function = As<ir::FunctionNode>(entry.function)) finder.VisitExpr(function->body);
  }
  if (finder.found.empty()) return module;
  CallSplitter splitter(finder.found);
  for (const ir::IRModule::Entry& entry : entries) {
    const auto found = finder.found.find(entry.var->name);
    if (const ir::PrimFunc function = module.FindPrimFunc(entry.var->name)) {
      if (found != finder.found.end()) module.Set(entry.var, Split(function, found->second));
    } else if (const ir::Function function = ir::AsRef<ir::FunctionNode>(entry.function)) {
      module.Set(entry.var, splitter.MutateFunction(function));
    }
  }
  return module;
}

}  // namespace ingot::transform
