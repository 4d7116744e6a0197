// Conversions between tensors and constants, and two mutators: one binds parameters to constants, the other replaces
// named constants by parameters.
#include "compiler/transform/params.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/structural.h"
#include "compiler/ir/visitor.h"
#include "compiler/script/printer.h"
#include "runtime/suggest.h"

namespace ingot::transform {

using ir::As;
using ir::Expr;

namespace {

constexpr const char* kNumInputAttr = "num_input";
constexpr const char* kInputNamesAttr = "input_names";

// Replaces parameters by constants.
class ParamBinder : public ir::ExprMutator {
 public:
  void Bind(const ir::Var& var, Expr value) { var_map_[var] = std::move(value); }
  bool Binds(const ir::Var& var) const { return var_map_.contains(var); }
};

// Replaces named constants by new variables, one for each name and contents.
class Detacher : public ir::ExprMutator {
 public:
  explicit Detacher(const ir::Function& function) {
    for (const ir::Var& param : function->params) taken_.insert(param->name);
  }
  std::vector<ir::Var> params;
  std::vector<NamedConstant> constants;

 protected:
  using ExprMutator::Mutate;
  Expr Mutate(const ir::Constant& constant) override {
    if (constant->name.empty()) return constant;
    for (size_t i = 0; i < constants.size(); ++i) {
      if (sources_[i] == constant->name && constants[i].data->Equals(*constant->data)) return params[i];
    }
    std::string name = constant->name;
    for (int suffix = 1; !taken_.insert(name).second; ++suffix) name = constant->name + std::to_string(suffix);
    sources_.push_back(constant->name);
    constants.push_back({name, constant->data});
    params.push_back(ir::Make<ir::VarNode>(name, constant->type));
    return params.back();
  }

 private:
  std::unordered_set<std::string> taken_;
  std::vector<std::string> sources_;  // original names of the constants
};

ir::AttrList ListOf(const ir::Attrs& attrs, const char* name) {
  const ir::AttrValue* value = attrs.Find(name);
  const auto* list = value == nullptr ? nullptr : value->get<ir::AttrList>();
  return list == nullptr ? ir::AttrList() : *list;
}

Result<ir::Function> FindGraphFunction(const ir::IRModule& module, std::string_view name) {
  const ir::Function function = module.FindFunction(name);
  if (function != nullptr) return function;
  std::vector<std::string_view> known;
  for (const ir::IRModule::Entry& entry : module) {
    if (As<ir::FunctionNode>(entry.function) != nullptr) known.push_back(entry.var->name);
  }
  return Status(StatusCode::kInvalidArgument,
                "the module has no graph function \"" + std::string(name) + "\"" + DidYouMean(name, known));
}

}  // namespace

int64_t NumInput(const ir::FunctionNode& function) {
  const ir::AttrValue* value = function.attrs.Find(kNumInputAttr);
  const auto* number = value == nullptr ? nullptr : value->get<int64_t>();
  return number == nullptr ? static_cast<int64_t>(function.params.size()) : *number;
}

std::shared_ptr<const ir::ConstantData> ConstantOf(const Tensor& tensor) {
  auto owner = std::make_shared<const Tensor>(tensor);
  const std::vector<int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  return std::make_shared<const ir::ConstantData>(tensor.dtype(), dims, std::as_bytes(owner->bytes()), owner);
}

Result<Tensor> TensorOf(const ir::ConstantData& constant) {
  const auto bytes = constant.bytes();
  return Tensor::FromBytes(constant.dtype(), constant.dims(),
                           {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

Result<ir::IRModule> BindParams(ir::IRModule module, std::string_view function,
                                std::span<const NamedConstant> constants) {
  INGOT_ASSIGN_OR_RETURN(const ir::Function target, FindGraphFunction(module, function));
  std::vector<std::string_view> names;
  for (const ir::Var& param : target->params) names.push_back(param->name);
  ParamBinder binder;
  for (const NamedConstant& named : constants) {
    const auto found = std::ranges::find(names, named.name);
    if (found == names.end()) {
      return Status(StatusCode::kBadInput, "\"" + named.name + "\" is no parameter of \"" + std::string(function) +
                                               "\"" + DidYouMean(named.name, names));
    }
    const ir::Var& param = target->params[static_cast<size_t>(found - names.begin())];
    const ir::Constant constant = ir::Make<ir::ConstantNode>(named.data, named.name);
    if (!ir::StructuralEqual(param->type, constant->type)) {
      return Status(StatusCode::kBadInput, "\"" + named.name + "\": expected " + script::PrintType(param->type) +
                                               ", got " + script::PrintType(constant->type));
    }
    binder.Bind(param, constant);
  }
  ir::FunctionNode bound = *binder.MutateFunction(target);
  bound.params.clear();
  const ir::AttrList shown = ListOf(target->attrs, kInputNamesAttr);
  const int64_t num_input = NumInput(*target);
  int64_t kept_input = num_input;
  ir::AttrList kept_names;
  for (size_t i = 0; i < target->params.size(); ++i) {
    if (binder.Binds(target->params[i])) {
      kept_input -= static_cast<int64_t>(i) < num_input ? 1 : 0;
      continue;
    }
    bound.params.push_back(target->params[i]);
    if (i < shown.size()) kept_names.push_back(shown[i]);
  }
  if (target->attrs.Find(kNumInputAttr) != nullptr) bound.attrs = bound.attrs.With(kNumInputAttr, kept_input);
  if (!shown.empty()) bound.attrs = bound.attrs.With(kInputNamesAttr, std::move(kept_names));
  module.Set(module.FindGlobalVar(function), ir::Make<ir::FunctionNode>(std::move(bound)));
  return module;
}

Result<DetachedParams> DetachParams(ir::IRModule module, std::string_view function) {
  INGOT_ASSIGN_OR_RETURN(const ir::Function target, FindGraphFunction(module, function));
  Detacher detacher(target);
  ir::FunctionNode detached = *detacher.MutateFunction(target);
  detached.attrs = detached.attrs.With(kNumInputAttr, NumInput(detached));
  if (ir::AttrList names = ListOf(detached.attrs, kInputNamesAttr); !names.empty()) {
    for (const NamedConstant& constant : detacher.constants) names.emplace_back(constant.name);
    detached.attrs = detached.attrs.With(kInputNamesAttr, std::move(names));
  }
  detached.params.insert(detached.params.end(), detacher.params.begin(), detacher.params.end());
  module.Set(module.FindGlobalVar(function), ir::Make<ir::FunctionNode>(std::move(detached)));
  return DetachedParams{std::move(module), std::move(detacher.constants)};
}

}  // namespace ingot::transform
