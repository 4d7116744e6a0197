// The bindings of a function that depend on weights only, through operators with a host routine: what `prepare` can
// compute. lift_params takes them out; passes that pack weights ask which arguments are weights.
#pragma once

#include <unordered_set>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::transform {

class WeightBindings {
 public:
  // Collects them from the whole function, branches included. keep: for a `prepare` that stays in the file, which VM
  // builtins compute; then only from the function's outermost dataflow blocks, which run once per call.
  WeightBindings(const ir::Function& function, bool keep);

  // In the order of the function.
  const std::vector<ir::Binding>& bindings() const { return bindings_; }
  bool Contains(const ir::Var& var) const { return vars_.contains(var.get()); }
  // Whether the value is a constant or one of these variables.
  bool IsWeight(const ir::Expr& value) const;

 private:
  void Collect(const ir::SeqExprNode& seq);
  bool CanPrepare(const ir::Binding& binding) const;
  // Returns true if the argument does not depend on inputs; sets uses_weight if a weight is in it.
  bool DependsOnWeights(const ir::Expr& arg, bool& uses_weight) const;

  bool keep_;
  std::vector<ir::Binding> bindings_;
  std::unordered_set<const ir::VarNode*> vars_;
};

}  // namespace ingot::transform
