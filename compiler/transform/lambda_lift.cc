// lambda_lift
//   Before: normal form; functions may be nested, use variables of the functions around them, and call themselves by
//           their variable.
//   After:  every function is one of the module. Captured variables of a nested function are its last parameters;
//           shapes after them hold symbols of the outer function that no parameter binds. Calls of the function name
//           it and pass what it captures; where it is used as a value, R.make_closure binds its captures.
//   Right after normalisation, so that no other pass has to handle nested functions.
//
// A nested function calls itself directly, with the captures that it was given, so that recursion makes no closures and
// a call at its end stays a tail call (Johnsson, "Lambda Lifting", 1985).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/op/names.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/symbols.h"
#include "vm/program/limits.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Expr;
using ir::PrimVar;
using ir::Type;
using ir::Var;

namespace {

// The module's function that a nested function became.
struct Lifted {
  ir::GlobalVar function;
  std::vector<Expr> captures;  // the captured variables of the outer function, for the last parameters
};

// Finds variables that are used elsewhere than as the callee of a call.
class ValueUses : public ir::ExprVisitor {
 public:
  explicit ValueUses(const Expr& expr) { VisitExpr(expr); }
  bool Contains(const Var& var) const { return used_.contains(var.get()); }
  void VisitBinding(const ir::Binding& binding) override { VisitExpr(binding.value); }

 protected:
  using ir::ExprVisitor::Visit;
  void Visit(const ir::CallNode& call) override {
    if (As<ir::VarNode>(call.callee) == nullptr) VisitExpr(call.callee);
    for (const Expr& arg : call.args) VisitExpr(arg);
  }
  void Visit(const ir::VarNode& var) override { used_.insert(&var); }

 private:
  std::unordered_set<const ir::VarNode*> used_;
};

// Returns the variables that a function uses and does not define, by first use.
std::vector<Var> FreeVars(const ir::Function& function) {
  struct Definitions : ir::ExprVisitor {
    std::unordered_set<const ir::VarNode*> defined;
    void VisitBinding(const ir::Binding& binding) override {
      defined.insert(binding.var.get());
      ir::ExprVisitor::VisitBinding(binding);
    }
  } definitions;
  definitions.VisitExpr(function->body);
  for (const Var& param : function->params) definitions.defined.insert(param.get());
  std::vector<Var> free;
  ForEachUse(function->body, [&](const Var& var) {
    if (definitions.defined.insert(var.get()).second) free.push_back(var);
  });
  return free;
}

// Replaces variables by other expressions, and calls of certain variables by calls of functions of the module.
class Replacer : public ir::ExprMutator {
 public:
  void Replace(const Var& var, Expr with) { var_map_[var] = std::move(with); }
  void ReplaceCalls(const Var& callee, Lifted with) { calls_[callee.get()] = std::move(with); }

 protected:
  using ir::ExprMutator::Mutate;
  Expr Mutate(const ir::Call& call) override {
    const auto found = calls_.find(As<ir::VarNode>(call->callee));
    if (found == calls_.end()) return ir::ExprMutator::Mutate(call);
    ir::CallNode direct = *call;
    direct.callee = found->second.function;
    for (Expr& arg : direct.args) arg = MutateExpr(arg);
    direct.args.insert(direct.args.end(), found->second.captures.begin(), found->second.captures.end());
    return ir::Make<ir::CallNode>(std::move(direct));
  }

 private:
  std::unordered_map<const ir::VarNode*, Lifted> calls_;
};

Expr MakeClosure(const Lifted& lifted, const Type& type) {
  std::vector<Type> types;
  for (const Expr& capture : lifted.captures) types.push_back(capture->type);
  const Expr captures = ir::Make<ir::TupleNode>(lifted.captures, ir::Make<ir::TupleTypeNode>(std::move(types)));
  return ir::Make<ir::CallNode>(op::GetOp(op::names::kMakeClosure), std::vector<Expr>{lifted.function, captures},
                                ir::Attrs{}, std::vector<Type>{}, type);
}

class Lifter : public Replacer {
 public:
  Lifter(ir::IRModule& module, std::string name, const ir::Function& function)
      : module_(module), name_(std::move(name)), values_(function->body) {
    for (const Var& param : function->params) AddSymbols(param);
  }

 protected:
  using Replacer::Mutate;
  Expr Mutate(const ir::SeqExpr& sequence) override {
    const Symbols around = symbols_;
    Expr result = Replacer::Mutate(sequence);
    symbols_ = around;
    return result;
  }
  void MutateBinding(const ir::Binding& binding) override {
    const ir::Function function = AsRef<ir::FunctionNode>(binding.value);
    if (function == nullptr) {
      Replacer::MutateBinding(binding);
      if (binding.is_match_cast()) AddSymbols(binding.var);
      return;
    }
    const Symbols around = symbols_;
    for (const Var& param : function->params) AddSymbols(param);
    const ir::Function inner = MutateFunction(function);  // functions nested in it are lifted first
    symbols_ = around;
    const Lifted lifted = Lift(binding.var, inner);
    ReplaceCalls(binding.var, lifted);
    if (lifted.captures.empty()) {
      Replace(binding.var, lifted.function);
    } else if (values_.Contains(binding.var)) {
      Emit({binding.var, MakeClosure(lifted, binding.var->type), nullptr, binding.span});
    }
  }

 private:
  using Symbols = std::unordered_set<const ir::Node*>;

  // Adds the symbols that get their values where the variable is bound.
  void AddSymbols(const Var& var) {
    SymbolVisitor([&](const PrimVar& symbol, bool binds) {
      if (binds) symbols_.insert(symbol.get());
    }).VisitParam(var);
  }

  Lifted Lift(const Var& self, const ir::Function& function) {
    Replacer replacer;
    Lifted outside, inside;  // the captures as the outer and the inner function see them
    ir::FunctionNode copy = *function;
    copy.is_private = true;
    for (const Var& var : FreeVars(function)) {
      if (var.same_as(self)) continue;
      const Var param = ir::Make<ir::VarNode>(var->name, var->type);
      copy.params.push_back(param);
      replacer.Replace(var, param);
      outside.captures.push_back(var);
      inside.captures.push_back(param);
    }
    Symbols bound;
    std::vector<PrimVar> symbols;
    bool is_body = false;
    SymbolVisitor visitor([&](const PrimVar& var, bool binds) {
      if (std::ranges::none_of(symbols, [&](const PrimVar& v) { return v.same_as(var); })) symbols.push_back(var);
      // A match of the body with a symbol from outside compares with its value there.
      if (binds && !(is_body && symbols_.contains(var.get()))) bound.insert(var.get());
    });
    for (const Var& param : copy.params) visitor.VisitParam(param);
    is_body = true;
    visitor.VisitExpr(copy.body);
    std::vector<ir::PrimExpr> unbound;
    for (const PrimVar& var : symbols) {
      if (!bound.contains(var.get())) unbound.push_back(var);
    }
    for (size_t first = 0; first < unbound.size(); first += vm::kMaxTensorRank) {  // as many as a shape may have
      const auto begin = unbound.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<ir::PrimExpr> some(begin,
                                           begin + std::min<std::ptrdiff_t>(vm::kMaxTensorRank, unbound.end() - begin));
      const Var param = ir::Make<ir::VarNode>("symbols", ir::Make<ir::ShapeTypeNode>(some));
      copy.params.push_back(param);
      outside.captures.push_back(ir::Make<ir::ShapeExprNode>(some));
      inside.captures.push_back(param);
    }
    std::vector<Type> types;
    for (const Var& param : copy.params) types.push_back(param->type);
    inside.function = outside.function =
        ir::Make<ir::GlobalVarNode>(module_.FreshName(name_ + "_" + self->name),
                                    ir::Make<ir::CallableTypeNode>(std::move(types), copy.result_type, copy.is_pure));
    // The function may refer to itself: a call becomes one of the lifted function, any other use a closure.
    replacer.ReplaceCalls(self, inside);
    if (inside.captures.empty()) {
      replacer.Replace(self, inside.function);
    } else if (ValueUses(copy.body).Contains(self)) {
      const Var closure = ir::Make<ir::VarNode>(self->name, self->type);
      replacer.Replace(self, closure);
      ir::SeqExprNode body = *copy.body;
      body.blocks.insert(body.blocks.begin(),
                         ir::BindingBlock{{{closure, MakeClosure(inside, self->type), nullptr, function->span}}});
      copy.body = ir::Make<ir::SeqExprNode>(std::move(body));
    }
    copy.body = ir::Downcast<ir::SeqExprNode>(replacer.MutateExpr(copy.body));
    ir::PrimVarMap renamed;
    for (const PrimVar& var : symbols) renamed.emplace(var, ir::MakePrimVar(var->name, var->dtype));
    module_.Set(outside.function, RenameSymbols(ir::Make<ir::FunctionNode>(std::move(copy)), std::move(renamed)));
    return outside;
  }

  ir::IRModule& module_;
  const std::string name_;
  const ValueUses values_;
  Symbols symbols_;  // those that have values where the walk is
};

}  // namespace

Result<ir::IRModule> LambdaLift(ir::IRModule module, PassContext&) {
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = AsRef<ir::FunctionNode>(entry.function);
    if (function == nullptr) continue;
    const ir::Function lifted = Lifter(module, entry.var->name, function).MutateFunction(function);
    if (!lifted.same_as(function)) module.Set(entry.var, lifted);
  }
  return module;
}

}  // namespace ingot::transform
