// One walk over the blocks in order: a binding is added if every argument is a constant or was added before.
#include "compiler/transform/weight_bindings.h"

#include "compiler/ir/visitor.h"
#include "compiler/op/registry.h"

namespace ingot::transform {

using ir::As;
using ir::Binding;
using ir::Expr;

WeightBindings::WeightBindings(const ir::Function& function, bool keep) : keep_(keep) { Collect(*function->body); }

void WeightBindings::Collect(const ir::SeqExprNode& seq) {
  for (const ir::BindingBlock& block : seq.blocks) {
    if (keep_ && !block.is_dataflow) continue;
    for (const Binding& binding : block.bindings) {
      const auto* branch = As<ir::IfNode>(binding.value);
      if (branch != nullptr) {
        Collect(*branch->then_branch);
        Collect(*branch->else_branch);
      } else if (CanPrepare(binding)) {
        vars_.insert(binding.var.get());
        bindings_.push_back(binding);
      }
    }
  }
}

bool WeightBindings::IsWeight(const Expr& value) const {
  const auto* var = As<ir::VarNode>(value);
  return var != nullptr ? vars_.contains(var) : As<ir::ConstantNode>(value) != nullptr;
}

bool WeightBindings::CanPrepare(const Binding& binding) const {
  const auto* call = As<ir::CallNode>(binding.value);
  if (call == nullptr || binding.is_match_cast()) return false;
  const auto* op = As<ir::OpNode>(call->callee);
  if (op == nullptr || op->row->effect != op::Effect::kPure) return false;
  if (keep_ ? op->row->prepare == nullptr : op->row->fold == nullptr) return false;
  bool uses_weight = false;
  for (const Expr& arg : call->args) {
    if (!DependsOnWeights(arg, uses_weight)) return false;
  }
  return uses_weight;
}

bool WeightBindings::DependsOnWeights(const Expr& arg, bool& uses_weight) const {
  if (const auto* var = As<ir::VarNode>(arg)) {
    uses_weight |= vars_.contains(var);
    return vars_.contains(var);
  }
  if (As<ir::ConstantNode>(arg) != nullptr) return uses_weight = true;
  if (const auto* tuple = As<ir::TupleNode>(arg)) {
    for (const Expr& field : tuple->fields) {
      if (!DependsOnWeights(field, uses_weight)) return false;
    }
    return true;
  }
  if (const auto* shape = As<ir::ShapeExprNode>(arg)) {
    for (const ir::PrimExpr& dim : shape->dims) {
      if (!ir::AsConstInt(dim)) return false;
    }
    return true;
  }
  if (const auto* scalar = As<ir::PrimValueNode>(arg)) return ir::FreePrimVars(scalar->value).empty();
  return As<ir::StringValueNode>(arg) != nullptr || As<ir::DataTypeValueNode>(arg) != nullptr;
}

}  // namespace ingot::transform
