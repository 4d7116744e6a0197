// fold_constants
//   Before: normal form, types.
//   After:  a pure operator call whose arguments are all constants is a constant, if the operator has a host routine
//           and the budget lasts; so is a call of a tensor function that moves elements or does plain arithmetic. The
//           log says what was left and why. With PassOptions::keep_prepare, calls on weights (constants with a name)
//           are left for lift_params.
//   Before common subexpression and dead code elimination, which then see fewer and simpler bindings.
#include "compiler/ir/visitor.h"
#include "compiler/transform/constant_folder.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

class FoldMutator : public ir::ExprMutator {
 public:
  FoldMutator(ConstantFolder& folder, const ir::IRModule& module, PassContext& context, const std::string& function)
      : folder_(folder), module_(module), context_(context), function_(function) {}

 protected:
  void MutateBinding(const ir::Binding& binding) override {
    if (As<ir::CallNode>(binding.value) == nullptr || binding.is_match_cast()) {
      return ir::ExprMutator::MutateBinding(binding);
    }
    const ir::Call call = ir::Downcast<ir::CallNode>(MutateExpr(binding.value));
    const ConstantFolder::Outcome outcome = Fold(call);
    if (outcome.value.get() != nullptr) {
      var_map_[binding.var] = outcome.value;
      return;
    }
    NoteLeft(context_, "fold_constants: " + function_ + ": left \"" + binding.var->name + "\" unfolded", outcome);
    Emit({binding.var, call, nullptr, binding.span});
  }

 private:
  ConstantFolder::Outcome Fold(const ir::Call& call) {
    return AsCallTir(call) ? folder_.FoldTir(module_, call) : folder_.Fold(call);
  }

  ConstantFolder& folder_;
  const ir::IRModule& module_;
  PassContext& context_;
  const std::string& function_;
};

}  // namespace

Result<ir::IRModule> FoldConstants(ir::IRModule module, PassContext& context) {
  ConstantFolder folder(context.options);
  const ir::IRModule original = module;
  return MapFunctions(std::move(module),
                      [&](const ir::GlobalVar& var, const ir::Function& function) -> Result<ir::Function> {
                        if (function->attrs.Find(kPrepareAttr) != nullptr) return function;
                        return FoldMutator(folder, original, context, var->name).MutateFunction(function);
                      });
}

}  // namespace ingot::transform
