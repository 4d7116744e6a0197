// Declares everything before bodies are lowered: captures of closures, externals (their signatures are united over all
// calls), states, signatures and closure entries. Constants are added while bodies are lowered.
#include "compiler/lower/program_lowering.h"

#include <algorithm>
#include <utility>

#include "compiler/ir/visitor.h"
#include "compiler/lower/prim_entry.h"
#include "compiler/lower/vm_types.h"
#include "compiler/memory/destination_passing.h"
#include "compiler/op/names.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/signature.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

class CallVisitor : public ExprVisitor {
 public:
  explicit CallVisitor(std::function<void(const CallNode&)> visit) : visit_(std::move(visit)) {}

 protected:
  void Visit(const CallNode& call) override {
    visit_(call);
    ExprVisitor::Visit(call);
  }

 private:
  std::function<void(const CallNode&)> visit_;
};

void ForEachCall(const IRModule& module, const std::function<void(const CallNode&)>& visit) {
  for (const IRModule::Entry& entry : module.functions()) CallVisitor(visit).VisitExpr(entry.function);
}

// Reduces `type` to what both types say; false if no type takes both.
bool Unite(vm::Type& type, const vm::Type& other) {
  if (type.kind != other.kind || type.dtype != other.dtype || type.storage != other.storage) return false;
  if (type.dims.size() != other.dims.size() || type.elements.size() != other.elements.size()) return false;
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (type.dims[i] != other.dims[i]) type.dims[i].reset();
  }
  for (size_t i = 0; i < type.elements.size(); ++i) {
    if (!Unite(type.elements[i], other.elements[i])) return false;
  }
  return type.results == other.results;
}

bool Unite(std::vector<vm::NamedType>& types, const std::vector<vm::NamedType>& others) {
  if (types.size() != others.size()) return false;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!Unite(types[i].type, others[i].type)) return false;
  }
  return true;
}

// Checks that the bounds of symbols are integers by symbol name.
Status CheckDimBounds(const Function& function) {
  for (const char* attr : {"tir_var_lower_bound", "tir_var_upper_bound"}) {
    const AttrValue* const bounds = function->attrs.Find(attr);
    if (bounds == nullptr) continue;
    const auto* items = bounds->get<AttrDict>();
    if (items == nullptr || !std::all_of(items->begin(), items->end(), [](const auto& item) {
          return item.second.template get<int64_t>() != nullptr;
        })) {
      return Status(StatusCode::kBadInput,
                    std::string("malformed attribute \"") + attr + "\": expected integers by the names of symbols");
    }
  }
  return Status();
}

// The external function's signature as one call shows it. Dims that are not constant are unknown.
Result<vm::Signature> SignatureOfExternalCall(const CallNode& call) {
  vm::Signature signature;
  const int64_t num_outputs = memory::NumWrittenArguments(call);
  for (size_t i = 0; i < call.args.size(); ++i) {
    const bool is_written = std::ssize(call.args) - static_cast<int64_t>(i) <= num_outputs;
    const vm::Storage storage = is_written ? vm::Storage::kBorrowedMut : vm::Storage::kBorrowed;
    // A string argument is passed as a string, although its type in the graph is Object.
    const bool is_string = As<StringValueNode>(call.args[i]) != nullptr;
    INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(call.args[i]->type, {}, storage, call.span));
    signature.params.push_back({"arg" + std::to_string(i), is_string ? vm::Type::String() : std::move(type)});
  }
  const std::vector<Type> results = ResultTypes(call.type);
  for (size_t i = 0; i < results.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(results[i], {}, vm::Storage::kOwned, call.span));
    signature.results.push_back({"result" + std::to_string(i), std::move(type)});
  }
  return signature;
}

}  // namespace

ProgramLowering::ProgramLowering(const IRModule& module, std::vector<codegen::KernelDescription> kernels)
    : module_(module), kernels_(std::move(kernels)) {
  for (uint32_t i = 0; i < kernels_.size(); ++i) kernel_ids_[kernels_[i].kernel.name] = vm::KernelId(i);
  uint32_t next = 0;
  for (const IRModule::Entry& entry : module.functions()) {
    const PrimFuncNode* prim = As<PrimFuncNode>(entry.function);
    if (prim != nullptr && prim->is_private) continue;
    function_ids_[entry.var->name] = vm::FunctionId(next++);
  }
}

Status ProgramLowering::Declare() {
  INGOT_RETURN_IF_ERROR(FindCaptures());
  INGOT_RETURN_IF_ERROR(DeclareExternals());
  for (codegen::KernelDescription& kernel : kernels_) {
    for (const std::string& name : kernel.externals) kernel.kernel.externals.push_back(external_ids_.at(name));
    program_.kernels.push_back(std::move(kernel.kernel));
  }
  for (const IRModule::Entry& entry : module_.functions()) {
    if (const Function function = AsRef<FunctionNode>(entry.function)) {
      Result<std::vector<KeptState>> states = FindStates(function);
      if (!states.ok()) return std::move(states).status().WithContext("function \"" + entry.var->name + "\"");
      states_.emplace(entry.var->name, *std::move(states));
      Result<vm::Signature> signature = SignatureOf(entry.var->name, function);
      if (!signature.ok()) return std::move(signature).status().WithContext("function \"" + entry.var->name + "\"");
      signatures_.push_back(*std::move(signature));
    } else if (const PrimFunc prim = Downcast<PrimFuncNode>(entry.function); !prim->is_private) {
      const vm::KernelId kernel = kernel_ids_.at(entry.var->name);
      signatures_.push_back(SignatureOfPrimEntry(program_.kernels[kernel.value], prim));
    }
  }
  for (const ClosureEntry& entry : closure_entries_) {
    vm::Signature signature = signatures_[FindFunction(entry.name)->value];
    const auto captured = static_cast<std::ptrdiff_t>(entry.num_captured);
    std::rotate(signature.params.begin(), signature.params.end() - captured, signature.params.end());
    signatures_.push_back(std::move(signature));
  }
  return Status();
}

vm::FunctionId ProgramLowering::ClosureTarget(const std::string& name, size_t num_captured) const {
  const size_t num_functions = signatures_.size() - closure_entries_.size();
  for (size_t i = 0; i < closure_entries_.size(); ++i) {
    if (closure_entries_[i].name == name && closure_entries_[i].num_captured == num_captured) {
      return vm::FunctionId(static_cast<uint32_t>(num_functions + i));
    }
  }
  return *FindFunction(name);
}

std::vector<vm::Function> ProgramLowering::LowerClosureEntries() const {
  std::vector<vm::Function> functions;
  for (const ClosureEntry& entry : closure_entries_) {
    const vm::Signature& signature = signatures_[ClosureTarget(entry.name, entry.num_captured).value];
    vm::FunctionBuilder builder(entry.name + ".closure" + std::to_string(entry.num_captured), signature,
                                /*exported=*/false);
    std::vector<vm::RegisterId> args, results;
    for (size_t i = 0; i < signature.params.size(); ++i) args.push_back(builder.param(i));
    std::rotate(args.begin(), args.begin() + static_cast<std::ptrdiff_t>(entry.num_captured), args.end());
    for (const vm::NamedType& result : signature.results) results.push_back(builder.AddRegister(vm::Type(result.type)));
    builder.Note(entry.name);
    builder.CallFunction(results, *FindFunction(entry.name), std::move(args));
    builder.Return(std::move(results));
    functions.push_back(std::move(builder).Finish());
  }
  return functions;
}

Status ProgramLowering::FindCaptures() {
  Status status;
  ForEachCall(module_, [&](const CallNode& call) {
    if (!op::IsCallOf(call, op::names::kMakeClosure) || !status.ok()) return;
    const GlobalVarNode* callee = As<GlobalVarNode>(call.args.at(0));
    const Function function = callee == nullptr ? Function() : module_.FindFunction(callee->name);
    if (!function) {
      status = Unsupported(call.span, "R.make_closure: expected a graph function of the module");
      return;
    }
    const size_t count = Downcast<TupleTypeNode>(call.args.at(1)->type)->fields.size();
    if (!function->is_private) {
      const bool is_known = std::ranges::any_of(
          closure_entries_, [&](const ClosureEntry& e) { return e.name == callee->name && e.num_captured == count; });
      if (count > 0 && !is_known) closure_entries_.push_back({callee->name, count});
      return;
    }
    const auto [it, is_new] = num_captured_.emplace(callee->name, count);
    if (it->second != count) {
      status =
          Unsupported(call.span, "closures of \"" + callee->name + "\" that capture " + std::to_string(it->second) +
                                     " values, and others that capture " + std::to_string(count));
    }
  });
  return status;
}

Status ProgramLowering::DeclareExternals() {
  Status status;
  ForEachCall(module_, [&](const CallNode& call) {
    const ExternFuncNode* external = As<ExternFuncNode>(call.callee);
    if (external == nullptr || external->name.starts_with(memory::kBuiltinPrefix) || !status.ok()) return;
    Result<vm::Signature> signature = SignatureOfExternalCall(call);
    if (!signature.ok()) {
      status = std::move(signature).status().WithContext("external function \"" + external->name + "\"");
      return;
    }
    const uint32_t effects = call.attrs.Find(memory::kPureAttr) != nullptr ? 0 : vm::kAllEffects;
    status = AddExternal(external->name, *std::move(signature), effects, call.span);
  });
  INGOT_RETURN_IF_ERROR(std::move(status));
  // Kernels pass raw pointers, so nothing is known of the parameter types of externals that only kernels call.
  for (const codegen::KernelDescription& kernel : kernels_) {
    for (const std::string& name : kernel.externals) {
      if (external_ids_.contains(name)) continue;
      INGOT_RETURN_IF_ERROR(AddExternal(name, {}, vm::kAllEffects, Span()));
    }
  }
  return Status();
}

Status ProgramLowering::AddExternal(const std::string& name, vm::Signature signature, uint32_t effects,
                                    const Span& span) {
  const auto found = external_ids_.find(name);
  if (found == external_ids_.end()) {
    external_ids_.emplace(name, vm::ExternalId(static_cast<uint32_t>(program_.externals.size())));
    program_.externals.push_back({name, std::move(signature), effects});
    return Status();
  }
  vm::External& known = program_.externals[found->second.value];
  const std::string before = known.signature.ToString();
  known.effects |= effects;
  if (Unite(known.signature.params, signature.params) && Unite(known.signature.results, signature.results)) {
    return Status();
  }
  return Unsupported(
      span, "the external function \"" + name + "\" is called as " + before + " and as " + signature.ToString());
}

Result<vm::Signature> ProgramLowering::SignatureOf(const std::string& name, const Function& function) const {
  const std::span<const Var> params(function->params.data(), transform::NumInputs(*function));
  const std::vector<PrimVar> symbols = transform::SignatureSymbols(params);
  INGOT_RETURN_IF_ERROR(CheckDimBounds(function));
  vm::Signature signature;
  signature.symbols = NameSymbols(symbols, function->attrs);
  const std::vector<KeptState>& kept = states(name);
  for (size_t i = 0; i < params.size(); ++i) {
    if (const KeptState* state = StateOfParam(kept, i)) {
      const auto* length = As<ShapeTypeNode>(params[i]->type);
      for (size_t s = 0; length != nullptr && s < symbols.size(); ++s) {
        if ((*length->dims)[0].same_as(symbols[s])) signature.symbols[s].state = state->id;
      }
      continue;
    }
    INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(params[i]->type, symbols, vm::Storage::kBorrowed, params[i]->span));
    signature.params.push_back({transform::InputName(function, i), std::move(type)});
  }
  const auto captured = static_cast<std::ptrdiff_t>(NumCaptured(name));
  std::rotate(signature.params.begin(), signature.params.end() - captured, signature.params.end());
  const std::vector<Type> results = ResultTypes(function->body->body->type);
  const std::vector<Type> declared = ResultTypes(function->result_type);
  if (results.size() != declared.size())
    return Unsupported(function->span, "a result that is no tuple of known fields");
  for (size_t i = 0; i < results.size(); ++i) {
    if (StateOfResult(kept, i) != nullptr) continue;
    INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(results[i], symbols, vm::Storage::kOwned, function->span));
    // The declared type may say more, as it does for branches of different shapes and for recursion.
    if (std::find(type.dims.begin(), type.dims.end(), std::nullopt) != type.dims.end()) {
      INGOT_ASSIGN_OR_RETURN(type, LowerType(declared[i], symbols, vm::Storage::kOwned, function->span));
    }
    signature.results.push_back({transform::OutputName(function, i, results.size()), std::move(type)});
  }
  return signature;
}

const std::vector<KeptState>& ProgramLowering::states(const std::string& name) const {
  static const std::vector<KeptState> none;
  const auto it = states_.find(name);
  return it == states_.end() ? none : it->second;
}

const vm::KernelId* ProgramLowering::FindKernel(const std::string& name) const {
  const auto it = kernel_ids_.find(name);
  return it == kernel_ids_.end() ? nullptr : &it->second;
}

const vm::FunctionId* ProgramLowering::FindFunction(const std::string& name) const {
  const auto it = function_ids_.find(name);
  return it == function_ids_.end() ? nullptr : &it->second;
}

size_t ProgramLowering::NumCaptured(const std::string& name) const {
  const auto it = num_captured_.find(name);
  return it == num_captured_.end() ? 0 : it->second;
}

const vm::ExternalId* ProgramLowering::FindExternal(const std::string& name) const {
  const auto it = external_ids_.find(name);
  return it == external_ids_.end() ? nullptr : &it->second;
}

vm::ConstantId ProgramLowering::AddConstant(const ConstantNode& constant) {
  std::vector<uint32_t>& same_hash = constants_by_hash_[constant.data->ContentHash()];
  for (uint32_t i : same_hash) {
    if (constant_data_[i]->Equals(*constant.data)) return vm::ConstantId(i);
  }
  const auto id = static_cast<uint32_t>(program_.constants.size());
  same_hash.push_back(id);
  constant_data_.push_back(constant.data);
  program_.constants.push_back({constant.name, constant.data->dtype(), constant.data->dims(),
                                SharedBytes(constant.data->owner(), constant.data->bytes()), std::nullopt});
  return vm::ConstantId(id);
}

vm::ConstantId ProgramLowering::AddPreparedConstant(vm::Constant constant) {
  program_.constants.push_back(std::move(constant));
  constant_data_.push_back(nullptr);  // prepared constants are not shared
  return vm::ConstantId(static_cast<uint32_t>(program_.constants.size() - 1));
}

}  // namespace ingot::lower
