// lift_params
//   Before: normal form, before legalising.
//   After:  values that depend on weights only, through operators with a host routine, are computed by a function
//           `prepare`, and the rest takes its results. By default that function is evaluated here: its results are
//           constants, and it is gone; values for which the budget is too small stay where they were. With
//           PassOptions::keep_prepare it stays:
//             prepare() -> tuple, attribute "prepare"; the weights are its named constants;
//             main(inputs..., packed...), attribute "num_input" for the inputs and "packed_by" with the function's
//             name.
//   Before legalising, since `prepare` may call operators only; after everything that packs weights.
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "compiler/ir/visitor.h"
#include "compiler/transform/constant_folder.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/passes.h"
#include "compiler/transform/weight_bindings.h"

namespace ingot::transform {

using ir::As;
using ir::AsRef;
using ir::Binding;
using ir::Expr;

namespace {

// Removes the given bindings from a function and replaces their variables by expressions.
class Remover : public ir::ExprMutator {
 public:
  explicit Remover(std::unordered_map<ir::Var, Expr, ir::RefHash, ir::RefSame> replacements) {
    var_map_ = std::move(replacements);
  }

 protected:
  void MutateBinding(const Binding& binding) override {
    if (!var_map_.contains(binding.var)) ir::ExprMutator::MutateBinding(binding);
  }
};

// Evaluates prepare(): every binding through the operators' host routines. Bindings that fail or are over the budget
// stay, with the reason in the log. A value is dropped after its last use, so that steps of packing do not pile up in
// memory.
ir::Function Evaluate(const ir::Function& function, const WeightBindings& selection, const std::string& name,
                      ConstantFolder& folder, PassContext& context) {
  std::unordered_map<ir::Var, Expr, ir::RefHash, ir::RefSame> values;
  std::unordered_map<const ir::VarNode*, int64_t> uses;
  ForEachUse(function->body, [&](const ir::Var& used) { ++uses[used.get()]; });
  for (const Binding& binding : selection.bindings()) {
    ir::CallNode call = *As<ir::CallNode>(binding.value);
    for (Expr& arg : call.args) {
      if (const auto value = values.find(AsRef<ir::VarNode>(arg)); value != values.end()) arg = value->second;
      if (const auto* tuple = As<ir::TupleNode>(arg)) {
        ir::TupleNode fields = *tuple;
        for (Expr& field : fields.fields) {
          if (const auto value = values.find(AsRef<ir::VarNode>(field)); value != values.end()) field = value->second;
        }
        arg = ir::Make<ir::TupleNode>(std::move(fields));
      }
    }
    ConstantFolder::Outcome outcome = folder.Fold(ir::Make<ir::CallNode>(std::move(call)));
    if (outcome.value.get() != nullptr) {
      values.emplace(binding.var, outcome.value);
      ForEachUse(binding.value, [&](const ir::Var& used) {
        const auto value = values.find(used);
        if (--uses[used.get()] == 0 && value != values.end()) value->second = nullptr;
      });
    } else {
      if (outcome.reason.empty()) outcome.reason = "it depends on one that was left";
      NoteLeft(context, "lift_params: " + name + ": left \"" + binding.var->name + "\" unprepared", outcome);
    }
  }
  return Remover(std::move(values)).MutateFunction(function);
}

// Makes prepare() of the bindings, and gives the function its results as parameters.
ir::Function Split(ir::IRModule& module, const ir::GlobalVar& var, const ir::Function& function,
                   const WeightBindings& selection) {
  // The results of prepare(): variables that a remaining binding, or the function's own result, uses.
  std::vector<ir::Var> results;
  std::unordered_set<const ir::VarNode*> seen;
  const auto use = [&](const ir::Var& used) {
    if (selection.Contains(used) && seen.insert(used.get()).second) results.push_back(used);
  };
  for (const ir::BindingBlock& block : function->body->blocks) {
    for (const Binding& binding : block.bindings) {
      if (!selection.Contains(binding.var)) ForEachUse(binding.value, use);
    }
  }
  ForEachUse(function->body->body, use);

  std::unordered_map<ir::Var, Expr, ir::RefHash, ir::RefSame> parameters;
  std::vector<ir::Var> packed;
  std::vector<Expr> fields;
  std::vector<ir::Type> types;
  ir::BindingBlock block{selection.bindings(), /*is_dataflow=*/true};
  for (const ir::Var& result : results) {
    packed.push_back(ir::Make<ir::VarNode>(result->name, result->type));
    parameters.emplace(result, packed.back());
    const ir::Var field = ir::Make<ir::VarNode>(result->name, result->type);
    block.bindings.push_back({field, result, nullptr, {}});
    fields.push_back(field);
    types.push_back(result->type);
  }
  const ir::Type type = ir::Make<ir::TupleTypeNode>(types);
  const ir::SeqExpr body = ir::Make<ir::SeqExprNode>(std::vector<ir::BindingBlock>{std::move(block)},
                                                     ir::Make<ir::TupleNode>(std::move(fields), type), type);
  const std::string hint = var->name == "main" ? "prepare" : "prepare_" + var->name;
  const ir::GlobalVar prepare =
      module.Add(hint, ir::Make<ir::FunctionNode>(std::vector<ir::Var>{}, body, type, /*pure=*/true, /*priv=*/false,
                                                  ir::Attrs{{kPrepareAttr, true}}));
  for (const Binding& binding : selection.bindings()) {
    if (!parameters.contains(binding.var)) parameters.emplace(binding.var, binding.var);  // unused from here on
  }
  ir::FunctionNode copy = *Remover(std::move(parameters)).MutateFunction(function);
  // From here on "num_input" is the number of arguments that the caller passes, whatever a front end counted.
  copy.attrs = copy.attrs.With("num_input", static_cast<int64_t>(copy.params.size()));
  copy.attrs = copy.attrs.With(kPackedByAttr, prepare->name);
  copy.params.insert(copy.params.end(), packed.begin(), packed.end());
  return ir::Make<ir::FunctionNode>(std::move(copy));
}

}  // namespace

Result<ir::IRModule> LiftParams(ir::IRModule module, PassContext& context) {
  ConstantFolder folder(context.options);
  const std::vector<ir::IRModule::Entry> entries = module.functions();
  std::unordered_set<std::string> called;
  for (const ir::IRModule::Entry& entry : entries) {
    ForEachGlobalVar(entry.function, [&](const ir::GlobalVar& callee) { called.insert(callee->name); });
  }
  for (const ir::IRModule::Entry& entry : entries) {
    const ir::Function function = AsRef<ir::FunctionNode>(entry.function);
    if (function.get() == nullptr || function->attrs.Find(kPrepareAttr) != nullptr) continue;
    // A function that the module itself calls is not split: its callers would have to pass the prepared values.
    const bool keep = context.options.keep_prepare && !function->is_private && !called.contains(entry.var->name);
    const WeightBindings selection(function, keep);
    if (selection.bindings().empty()) continue;
    module.Set(entry.var, keep ? Split(module, entry.var, function, selection)
                               : Evaluate(function, selection, entry.var->name, folder, context));
  }
  return module;
}

}  // namespace ingot::transform
