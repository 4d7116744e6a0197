// eliminate_common_subexpressions
//   Before: normal form, types.
//   After:  no pure value is computed twice where the first one is visible. A variable that only renames another one, a
//           field of a known tuple, and a view that changes nothing (an `is_view` operator with an equal type) are
//           replaced by what they stand for. Bindings that became unused stay for dead code elimination.
//   After folding, so that equal constants are found; before legalising, while operators are still visible.
//
// Value numbering in one walk: a value, with variables replaced by their representatives, is looked up by its
// structural hash. A branch sees the bindings before its If and adds to the table for itself only; a dataflow variable
// is forgotten at the end of its block.
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::Binding;
using ir::Expr;

namespace {

class ValueNumbering : public ir::ExprMutator {
 public:
  explicit ValueNumbering(const ir::IRModule& module) : module_(module) {}

 protected:
  void MutateBinding(const Binding& binding) override {
    const Expr value = MutateExpr(binding.value);
    Binding result{binding.var, value, binding.match_cast, binding.span};
    if (!binding.is_match_cast()) {
      const Expr same = Representative(value);
      if (same.get() != nullptr && Replace(binding.var, same)) return;
      if (same.get() != nullptr) result.value = same;  // a result of the block keeps its name
    }
    Emit(result);
    if (!binding.is_match_cast() && result.value.same_as(value)) Remember(binding.var, value);
  }

  Expr Mutate(const ir::SeqExpr& seq) override {
    ir::BindingBlock* const outer_block = current_block_;
    const size_t outer_scope = added_.size();
    ir::SeqExprNode copy = *seq;
    for (ir::BindingBlock& block : copy.blocks) {
      const std::vector<Binding> bindings = std::exchange(block.bindings, {});
      const size_t block_scope = added_.size();
      current_block_ = &block;
      for (const Binding& binding : bindings) MutateBinding(binding);
      if (!block.is_dataflow) continue;
      Forget(block_scope, /*dataflow_only=*/true);
      std::erase_if(tuples_, [](const auto& item) { return HoldsDataflowVar(item.second); });
    }
    current_block_ = outer_block;
    std::erase_if(copy.blocks, [](const ir::BindingBlock& block) { return block.bindings.empty(); });
    copy.body = MutateExpr(copy.body);
    Forget(outer_scope, /*dataflow_only=*/false);
    return ir::Make<ir::SeqExprNode>(std::move(copy));
  }

 private:
  // Whether the tuple holds a dataflow variable; then it must not leave its block.
  static bool HoldsDataflowVar(const Expr& tuple) {
    bool found = false;
    ForEachUse(tuple, [&found](const ir::Var& var) { found = found || var->is_dataflow; });
    return found;
  }
  // Returns an earlier value that equals this one: a leaf or a variable; null if it is new.
  Expr Representative(const Expr& value) const {
    if (As<ir::VarNode>(value) != nullptr) return value;
    if (const auto* item = As<ir::TupleGetItemNode>(value)) {
      const auto tuple = tuples_.find(ir::AsRef<ir::VarNode>(item->tuple));
      if (tuple != tuples_.end()) return tuple->second->fields.at(item->index);
    }
    if (const auto* call = As<ir::CallNode>(value)) {
      const auto* op = As<ir::OpNode>(call->callee);
      if (op != nullptr && op->row->is_view && !call->args.empty() &&
          ir::StructuralEqual(call->type, call->args[0]->type)) {
        return call->args[0];
      }
    }
    if (EffectOf(module_, value) != op::Effect::kPure || IsTrivial(value)) return nullptr;
    const auto [first, last] = table_.equal_range(HashOf(value));
    for (auto it = first; it != last; ++it) {
      if (ir::StructuralEqual(it->second.second, value)) return it->second.first;
    }
    return nullptr;
  }
  // The structural hash is the same for all free variables. Here they must differ; otherwise all calls of one operator
  // would be in one bucket.
  static uint64_t HashOf(const Expr& value) {
    uint64_t hash = ir::StructuralHash(value);
    ForEachUse(value, [&hash](const ir::Var& var) {
      hash = (hash ^ std::hash<const void*>()(var.get())) * 0x9E3779B97F4A7C15u;
    });
    return hash;
  }
  // Leaves, and values with scopes of their own: for them it is not worth keeping a variable alive longer.
  static bool IsTrivial(const Expr& value) {
    switch (value->kind) {
      case ir::ExprKind::kCall:
      case ir::ExprKind::kTupleGetItem:
        return false;
      case ir::ExprKind::kVar:
      case ir::ExprKind::kConstant:
      case ir::ExprKind::kTuple:
      case ir::ExprKind::kIf:
      case ir::ExprKind::kShapeExpr:
      case ir::ExprKind::kPrimValue:
      case ir::ExprKind::kStringValue:
      case ir::ExprKind::kDataTypeValue:
      case ir::ExprKind::kOp:
      case ir::ExprKind::kGlobalVar:
      case ir::ExprKind::kExternFunc:
      case ir::ExprKind::kSeqExpr:
      case ir::ExprKind::kFunction:
      case ir::ExprKind::kPrimFunc:
        return true;
    }
    INGOT_UNREACHABLE("ExprKind");
  }
  // Makes uses of var become `same`, unless var leaves its block and `same` must not.
  bool Replace(const ir::Var& var, const Expr& same) {
    const auto* other = As<ir::VarNode>(same);
    if (other != nullptr && other->is_dataflow && !var->is_dataflow) return false;
    if (!ir::StructuralEqual(var->type, same->type)) return false;
    var_map_[var] = same;
    return true;
  }
  void Remember(const ir::Var& var, const Expr& value) {
    if (const auto* tuple = As<ir::TupleNode>(value)) tuples_[var] = ir::Ref<ir::TupleNode>(tuple);
    if (IsTrivial(value) || EffectOf(module_, value) != op::Effect::kPure) return;
    const uint64_t hash = HashOf(value);
    table_.emplace(hash, std::pair(var, value));
    added_.emplace_back(hash, var);
  }
  // Removes from the table what was added since `from`: all of it, or the dataflow variables only.
  void Forget(size_t from, bool dataflow_only) {
    size_t kept = from;
    for (size_t i = from; i < added_.size(); ++i) {
      const auto& [hash, var] = added_[i];
      if (dataflow_only && !var->is_dataflow) {
        added_[kept++] = added_[i];
        continue;
      }
      const auto [first, last] = table_.equal_range(hash);
      for (auto it = first; it != last; ++it) {
        if (it->second.first.same_as(var)) {
          table_.erase(it);
          break;
        }
      }
    }
    added_.resize(kept);
  }

  const ir::IRModule& module_;
  std::unordered_multimap<uint64_t, std::pair<ir::Var, Expr>> table_;
  std::vector<std::pair<uint64_t, ir::Var>> added_;  // in order, so that a scope can be left
  std::unordered_map<ir::Var, ir::Ref<ir::TupleNode>, ir::RefHash, ir::RefSame> tuples_;
};

}  // namespace

Result<ir::IRModule> EliminateCommonSubexpressions(ir::IRModule module, PassContext&) {
  const ir::IRModule original = module;
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
                        return ValueNumbering(original).MutateFunction(function);
                      });
}

}  // namespace ingot::transform
