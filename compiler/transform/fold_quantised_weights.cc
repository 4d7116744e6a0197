// fold_quantised_weights
//   Before: normal form, types; constants not folded.
//   After:  what quantises weights alone (a conversion of floats to bytes whose operands follow from constants) is a
//           constant of bytes, as files hold weights whose quantiser ran before. Training that quantises, and
//           quantisers that are told so, leave floats in the file, with the steps that make bytes of them.
//   Before quantised_products, which looks for weights of bytes; other constants are folded behind it, since it needs
//   the steps that make floats of bytes.
#include <unordered_map>

#include "compiler/ir/visitor.h"
#include "compiler/op/infer.h"
#include "compiler/op/names.h"
#include "compiler/transform/constant_folder.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {
namespace {

using ir::As;
using ir::Expr;

constexpr int kMostSteps = 32;  // from a weight to its bytes, one behind the other

// A conversion of floats to integers of 8 bits.
bool MakesBytes(const ir::Call& call) {
  if (!op::IsCallOf(call, op::names::kAstype)) return false;
  const auto *from = As<ir::TensorTypeNode>(call->args[0]->type), *to = As<ir::TensorTypeNode>(call->type);
  if (from == nullptr || to == nullptr || !from->dtype || !to->dtype) return false;
  return from->dtype->is_floating() && to->dtype->is_integral() && !to->dtype->is_bool() && to->dtype->bits == 8;
}

class QuantisationFolder : public ir::ExprMutator {
 public:
  QuantisationFolder(const ir::Function& function, ConstantFolder& folder) : folder_(folder) {
    const WeightBindings weights(function, /*keep=*/false);
    for (const ir::Binding& binding : weights.bindings()) {
      steps_[binding.var.get()] = ir::AsRef<ir::CallNode>(binding.value);
    }
  }

 protected:
  void MutateBinding(const ir::Binding& binding) override {
    const auto step = steps_.find(binding.var.get());
    if (step != steps_.end() && MakesBytes(step->second)) {
      ir::Constant bytes = ValueOf(step->first, step->second, kMostSteps);
      values_.clear();  // floats, of which bytes are a quarter
      if (bytes.get() != nullptr) {
        var_map_[binding.var] = std::move(bytes);
        return;
      }
    }
    ir::ExprMutator::MutateBinding(binding);
  }

 private:
  // Returns the value of a step, which is evaluated once for a weight, however many read it; null where it is left.
  ir::Constant ValueOf(const ir::VarNode* var, const ir::Call& call, int steps_left) {
    const auto known = values_.find(var);
    if (known != values_.end()) return known->second;
    ir::Constant value = Evaluate(call, steps_left);
    values_[var] = value;
    return value;
  }
  ir::Constant Evaluate(const ir::Call& call, int steps_left) {
    if (steps_left == 0) return nullptr;
    ir::CallNode known = *call;
    for (Expr& arg : known.args) {
      const auto step = steps_.find(As<ir::VarNode>(arg));
      if (step == steps_.end()) continue;
      arg = ValueOf(step->first, step->second, steps_left - 1);
      if (arg == nullptr) return nullptr;
    }
    return folder_.Fold(ir::Make<ir::CallNode>(std::move(known))).value;
  }

  ConstantFolder& folder_;
  std::unordered_map<const ir::VarNode*, ir::Call> steps_;
  std::unordered_map<const ir::VarNode*, ir::Constant> values_;
};

}  // namespace

Result<ir::IRModule> FoldQuantisedWeights(ir::IRModule module, PassContext& context) {
  ConstantFolder folder(context.options);
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar&, const ir::Function& function) -> Result<ir::Function> {
                        if (function->attrs.Find(kPrepareAttr) != nullptr) return function;
                        return QuantisationFolder(function, folder).MutateFunction(function);
                      });
}

}  // namespace ingot::transform
