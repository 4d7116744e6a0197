// eliminate_dead_code
//   Before: normal form.
//   After:  every binding is used, or has an effect that must happen (a write, an effect, a match_cast's check); every
//           private function is reachable from a public one.
//   Once after the simplifications, so that later passes do no useless work, and once after fusion, which leaves the
//   functions that were merged into groups.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

class Sweeper {
 public:
  explicit Sweeper(const ir::IRModule& module) : module_(module) {}

  ir::Function Sweep(const ir::Function& function) {
    const ir::SeqExpr body = Sweep(function->body);
    if (body.same_as(function->body)) return function;
    ir::FunctionNode copy = *function;
    copy.body = body;
    return ir::Make<ir::FunctionNode>(std::move(copy));
  }

 private:
  // Goes backwards over the bindings. What is used after the sequence does not matter: the sequence's variables are
  // visible inside of it only.
  ir::SeqExpr Sweep(const ir::SeqExpr& seq) {
    ir::SeqExprNode copy = *seq;
    bool changed = false;
    Use(seq->body);
    for (auto block = copy.blocks.rbegin(); block != copy.blocks.rend(); ++block) {
      std::vector<ir::Binding> kept;
      for (auto binding = block->bindings.rbegin(); binding != block->bindings.rend(); ++binding) {
        if (!used_.contains(binding->var.get()) && !MustHappen(*binding)) {
          changed = true;
          continue;
        }
        const Expr value = SweepInside(binding->value);
        changed |= !value.same_as(binding->value);
        binding->value = value;
        Use(value);
        kept.push_back(std::move(*binding));
      }
      std::reverse(kept.begin(), kept.end());
      block->bindings = std::move(kept);
    }
    if (!changed) return seq;
    std::erase_if(copy.blocks, [](const ir::BindingBlock& block) { return block.bindings.empty(); });
    return ir::Make<ir::SeqExprNode>(std::move(copy));
  }
  // Sweeps branches and local functions, before the variables that they use are counted.
  Expr SweepInside(const Expr& value) {
    if (const auto* branch = As<ir::IfNode>(value)) {
      const ir::SeqExpr then_branch = Sweep(branch->then_branch), else_branch = Sweep(branch->else_branch);
      if (then_branch.same_as(branch->then_branch) && else_branch.same_as(branch->else_branch)) return value;
      ir::IfNode copy = *branch;
      copy.then_branch = then_branch;
      copy.else_branch = else_branch;
      return ir::Make<ir::IfNode>(std::move(copy));
    }
    if (const ir::Function function = ir::AsRef<ir::FunctionNode>(value); function.get() != nullptr) {
      return Sweep(function);
    }
    return value;
  }
  bool MustHappen(const ir::Binding& binding) const {
    if (binding.is_match_cast()) return true;
    const op::Effect effect = EffectOf(module_, binding.value);
    return effect != op::Effect::kPure && effect != op::Effect::kReadsState;
  }
  void Use(const Expr& expr) {
    ForEachUse(expr, [this](const ir::Var& var) { used_.insert(var.get()); });
  }

  const ir::IRModule& module_;
  std::unordered_set<const ir::VarNode*> used_;
};

bool IsPrivate(const Expr& function) {
  if (const auto* prim_func = As<ir::PrimFuncNode>(function)) return prim_func->is_private;
  return ir::Downcast<ir::FunctionNode>(function)->is_private;
}

ir::IRModule RemoveUnreachable(ir::IRModule module) {
  std::unordered_set<std::string> reached;
  std::vector<Expr> pending;
  for (const ir::IRModule::Entry& entry : module.functions()) {
    if (!IsPrivate(entry.function) && reached.insert(entry.var->name).second) pending.push_back(entry.function);
  }
  while (!pending.empty()) {
    const Expr function = pending.back();
    pending.pop_back();
    ForEachGlobalVar(function, [&](const ir::GlobalVar& var) {
      const Expr callee = module.Find(var->name);
      if (callee.get() != nullptr && reached.insert(var->name).second) pending.push_back(callee);
    });
  }
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  for (const ir::IRModule::Entry& entry : entries) {
    if (!reached.contains(entry.var->name)) module.Remove(entry.var);
  }
  return module;
}

}  // namespace

Result<ir::IRModule> EliminateDeadCode(ir::IRModule module, PassContext&) {
  const ir::IRModule original = module;
  INGOT_ASSIGN_OR_RETURN(
      module,
      MapFunctions(std::move(module), [&](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
        return Sweeper(original).Sweep(function);
      }));
  return RemoveUnreachable(std::move(module));
}

}  // namespace ingot::transform
