// Short visitors over graph expressions, and the helpers that apply a rewrite to blocks or functions.
#include "compiler/transform/graph_util.h"

#include <algorithm>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/op/names.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Expr;
using op::Effect;

namespace {

// The effects of calls anywhere inside a value. A nested function is a closure: creating it has no effect.
class EffectVisitor : public ir::ExprVisitor {
 public:
  explicit EffectVisitor(const ir::IRModule& module) : module_(module) {}
  Effect effect = Effect::kPure;

 protected:
  void Visit(const ir::CallNode& call) override {
    effect = std::max(effect, OfCallee(call));
    ir::ExprVisitor::Visit(call);
  }
  void Visit(const ir::FunctionNode&) override {}

 private:
  Effect OfCallee(const ir::CallNode& call) const {
    if (const auto* op = As<ir::OpNode>(call.callee)) return op->row->effect;
    if (const auto* global = As<ir::GlobalVarNode>(call.callee)) {
      const ir::Function function = module_.FindFunction(global->name);
      return function.get() != nullptr && function->is_pure ? Effect::kPure : Effect::kEffect;
    }
    const auto* callable = As<ir::CallableTypeNode>(call.callee->type);
    return callable != nullptr && callable->is_pure ? Effect::kPure : Effect::kEffect;
  }
  const ir::IRModule& module_;
};

class UseVisitor : public ir::ExprVisitor {
 public:
  explicit UseVisitor(const std::function<void(const ir::Var&)>& use) : use_(use) {}
  void VisitBinding(const ir::Binding& binding) override { VisitExpr(binding.value); }

 protected:
  void Visit(const ir::VarNode& var) override { use_(ir::Var(&var)); }

 private:
  const std::function<void(const ir::Var&)>& use_;
};

class GlobalVarVisitor : public ir::ExprVisitor {
 public:
  explicit GlobalVarVisitor(const std::function<void(const ir::GlobalVar&)>& use) : use_(use) {}

 protected:
  void Visit(const ir::GlobalVarNode& var) override { use_(ir::GlobalVar(&var)); }

 private:
  const std::function<void(const ir::GlobalVar&)>& use_;
};

}  // namespace

bool HasKnownShape(const ir::Type& type) {
  const auto* tensor = As<ir::TensorTypeNode>(type);
  return tensor != nullptr && tensor->dims.has_value() && tensor->dtype.has_value();
}

Effect EffectOf(const ir::IRModule& module, const Expr& value) {
  EffectVisitor visitor(module);
  visitor.VisitExpr(value);
  return visitor.effect;
}

std::optional<CallTir> AsCallTir(const Expr& value) {
  const auto* call = As<ir::CallNode>(value);
  if (call == nullptr || !op::IsCallOf(*call, op::names::kCallTir)) return std::nullopt;
  CallTir result;
  result.callee = AsRef<ir::GlobalVarNode>(call->args.at(0));
  if (result.callee == nullptr) return std::nullopt;
  if (const auto* tuple = As<ir::TupleNode>(call->args.at(1))) {
    result.args = tuple->fields;
  } else {
    result.args = {call->args[1]};
  }
  if (call->args.size() > 2) result.tir_vars = call->args[2];
  result.results = call->type_args;
  return result;
}

void ForEachUse(const Expr& expr, const std::function<void(const ir::Var&)>& use) { UseVisitor(use).VisitExpr(expr); }

void ForEachGlobalVar(const Expr& expr, const std::function<void(const ir::GlobalVar&)>& use) {
  GlobalVarVisitor(use).VisitExpr(expr);
}

const op::Dims* DimsOf(const Expr& expr) {
  const auto* type = expr ? As<ir::TensorTypeNode>(expr->type) : nullptr;
  return type != nullptr && type->dims ? &*type->dims : nullptr;
}

const op::Dims* TypedDimsOf(const Expr& expr) {
  const op::Dims* dims = DimsOf(expr);
  return dims != nullptr && As<ir::TensorTypeNode>(expr->type)->dtype ? dims : nullptr;
}

bool EqualDims(const op::Dims& a, const op::Dims& b) { return std::ranges::equal(a, b, op::DimsEqual); }

Result<ir::Function> MapDataflowBlocks(const ir::Function& function,
                                       const std::function<Result<bool>(std::vector<ir::Binding>&)>& rewrite) {
  ir::SeqExprNode body = *function->body;
  bool is_changed = false;
  for (ir::BindingBlock& block : body.blocks) {
    if (!block.is_dataflow) continue;
    INGOT_ASSIGN_OR_RETURN(const bool changed, rewrite(block.bindings));
    is_changed |= changed;
  }
  if (!is_changed) return function;
  ir::FunctionNode copy = *function;
  copy.body = ir::Make<ir::SeqExprNode>(std::move(body));
  return ir::Make<ir::FunctionNode>(std::move(copy));
}

ir::GlobalVar SharedFunctions::Add(const ir::PrimFunc& function, std::string_view hint) {
  std::vector<ir::GlobalVar>& candidates = made_[ir::StructuralHash(Expr(function))];
  for (const ir::GlobalVar& candidate : candidates) {
    if (ir::StructuralEqual(module_.Find(candidate->name), Expr(function))) return candidate;
  }
  candidates.push_back(module_.Add(hint, function));
  return candidates.back();
}

Result<ir::IRModule> MapFunctions(
    ir::IRModule module,
    const std::function<Result<ir::Function>(const ir::GlobalVar&, const ir::Function&)>& rewrite) {
  const std::vector<ir::IRModule::Entry> entries = module.functions();  // a copy, since the module changes below
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = AsRef<ir::FunctionNode>(entry.function);
    if (function.get() == nullptr) continue;
    Result<ir::Function> rewritten = rewrite(entry.var, function);
    if (!rewritten.ok()) return std::move(rewritten).status().WithContext("function \"" + entry.var->name + "\"");
    if (!rewritten->same_as(function)) module.Set(entry.var, *rewritten);
  }
  return module;
}

}  // namespace ingot::transform
