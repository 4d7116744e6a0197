// The order of the steps (Run), parameters, bindings, branches and the return.
#include "compiler/lower/function_lowering.h"

#include <algorithm>
#include <span>
#include <utility>

#include "compiler/lower/release.h"
#include "compiler/lower/vm_types.h"
#include "compiler/memory/tail_calls.h"
#include "compiler/op/names.h"
#include "compiler/transform/graph_util.h"
#include "compiler/transform/signature.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

FunctionLowering::FunctionLowering(ProgramLowering& program, const std::string& name, const Function& function)
    : program_(program),
      name_(name),
      function_(*function),
      signature_(program.signature(*program.FindFunction(name))),
      states_(program.states(name)),
      builder_(name, signature_, !function->is_private && function->attrs.Find(transform::kPrepareAttr) == nullptr),
      scope_(program, builder_,
             transform::SignatureSymbols(std::span(function->params.data(), transform::NumInputs(*function)))),
      plan_entries_(builder_),
      operands_(program, builder_, scope_),
      matching_(signature_, builder_, scope_, plan_entries_),
      outputs_(*function, states_, signature_, scope_, builder_),
      memory_(builder_, scope_, operands_, outputs_, plan_entries_),
      calls_(program, builder_, scope_, operands_, matching_, memory_),
      state_lowering_(program, *function, states_, builder_, scope_),
      loop_(name, function, builder_, operands_, matching_) {}

Result<vm::Function> FunctionLowering::Run() {
  INGOT_RETURN_IF_ERROR(BindParams());
  INGOT_RETURN_IF_ERROR(BindPacked());
  if (loop_.is_needed()) loop_.Enter();
  INGOT_RETURN_IF_ERROR(BindParameterDims());
  outputs_.FindAllocations(*function_.body);
  INGOT_RETURN_IF_ERROR(LowerTail(*function_.body));
  plan_entries_.SetLiveRanges();
  vm::Function function = std::move(builder_).Finish();
  ReleaseAtLastUse(function);
  return function;
}

Status FunctionLowering::BindParams() {
  const size_t num_inputs = transform::NumInputs(function_), captured = program_.NumCaptured(name_);
  if (!states_.empty() && (captured > 0 || loop_.is_needed())) {
    return program_.RefuseStates(function_.span, name_);
  }
  for (size_t i = 0, next = 0; i < num_inputs; ++i) {
    const Var& param = function_.params[i];
    if (const KeptState* state = StateOfParam(states_, i)) {
      INGOT_ASSIGN_OR_RETURN(Value value, state_lowering_.Bind(param, *state));
      operands_.Bind(param, std::move(value));
      continue;
    }
    // Captured parameters are the first ones in bytecode and the last ones in the graph.
    operands_.Bind(param, {builder_.param((next++ + captured) % num_inputs), {}});
  }
  return Status();
}

Status FunctionLowering::BindPacked() {
  const AttrValue* packed_by = function_.attrs.Find(transform::kPackedByAttr);
  if (packed_by == nullptr) return Status();
  const vm::FunctionId prepare = *program_.FindFunction(*packed_by->get<std::string>());
  const size_t num_inputs = transform::NumInputs(function_);
  for (size_t i = num_inputs; i < function_.params.size(); ++i) {
    const Var& param = function_.params[i];
    INGOT_ASSIGN_OR_RETURN(vm::Type type, scope_.RegisterType(param->type, vm::Storage::kConstant, param->span));
    if (!type.is_tensor() || !type.has_constant_dims()) {
      return Unsupported(param->span, "the packed parameter \"" + param->name + "\" is no tensor of constant dims");
    }
    vm::Constant constant{
        param->name, type.dtype, {}, {}, vm::PreparedBy{prepare, static_cast<uint32_t>(i - num_inputs)}};
    for (const vm::Dim& dim : type.dims) constant.dims.push_back(dim->constant());
    const vm::RegisterId dst = builder_.AddRegister(std::move(type));
    builder_.ConstTensor(dst, program_.AddPreparedConstant(std::move(constant)));
    operands_.Bind(param, {dst, {}});
  }
  return Status();
}

Status FunctionLowering::BindParameterDims() {
  for (size_t i = 0; i < transform::NumInputs(function_); ++i) {
    const Var& param = function_.params[i];
    matching_.BindDims(param->type, operands_.ValueOf(param.get()), "parameter \"" + param->name + "\"");
  }
  return matching_.CompareDims();
}

Status FunctionLowering::LowerBinding(const Binding& binding) {
  const auto lower = [&]() -> Status {
    // Names, not spans: an executable is the same whether it came from a file or from its text.
    if (binding.var->name != "_") builder_.Note(binding.var->name);
    if (binding.is_match_cast()) return LowerMatchCast(binding);
    INGOT_ASSIGN_OR_RETURN(Value value, LowerBound(binding));
    operands_.Bind(binding.var, std::move(value));
    return Status();
  };
  Status status = lower();
  if (status.ok()) return status;
  return std::move(status).WithContext("\"" + binding.var->name + "\"");
}

Result<Value> FunctionLowering::LowerBound(const Binding& binding) {
  if (const IfNode* branch = As<IfNode>(binding.value)) return LowerIf(*branch, binding.var->type);
  const CallNode* call = As<CallNode>(binding.value);
  if (call == nullptr) return operands_.Lower(binding.value);
  if (op::IsCallOf(*call, op::names::kAllocTensor)) return memory_.LowerAlloc(binding.var.get(), *call);
  return calls_.Lower(*call);
}

Status FunctionLowering::LowerMatchCast(const Binding& binding) {
  INGOT_ASSIGN_OR_RETURN(const Value source, LowerBound(binding));
  INGOT_ASSIGN_OR_RETURN(const Value value,
                         matching_.Matched(source, binding.match_cast, binding.span, {binding.var->name, ""}));
  operands_.Bind(binding.var, value);
  matching_.BindDims(binding.match_cast, value, "match_cast of \"" + binding.var->name + "\"");
  return matching_.CompareDims();
}

Status FunctionLowering::LowerTail(const SeqExprNode& seq) {
  const Binding* last = memory::TailBinding(seq);
  const IfNode* branch = last == nullptr ? nullptr : As<IfNode>(last->value);
  const bool is_jump = last != nullptr && loop_.IsBackEdge(last->value);
  for (const BindingBlock& block : seq.blocks) {
    for (const Binding& binding : block.bindings) {
      if (&binding == last && (branch != nullptr || is_jump)) break;
      INGOT_RETURN_IF_ERROR(LowerBinding(binding));
    }
  }
  if (branch == nullptr && !is_jump) return LowerReturn(seq);
  builder_.Note(last->var->name);
  Status status = branch != nullptr ? LowerTailIf(*branch) : loop_.LowerBackEdge(*As<CallNode>(last->value));
  if (status.ok()) return status;
  return std::move(status).WithContext("\"" + last->var->name + "\"");
}

// Each branch ends by leaving the function, or by jumping to its beginning.
Status FunctionLowering::LowerTailIf(const IfNode& node) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId condition, operands_.Condition(node.condition));
  const vm::LabelId then_label = builder_.NewLabel(), else_label = builder_.NewLabel();
  builder_.Branch(condition, then_label, else_label);
  for (const auto& [label, seq] : {std::pair(then_label, node.then_branch), std::pair(else_label, node.else_branch)}) {
    builder_.Bind(label);
    const RegisterScope::Mark mark = scope_.Enter();
    INGOT_RETURN_IF_ERROR(LowerTail(*seq));
    scope_.Leave(mark);
  }
  return Status();
}

Result<Value> FunctionLowering::LowerIf(const IfNode& node, const Type& type) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId condition, operands_.Condition(node.condition));
  INGOT_ASSIGN_OR_RETURN(Value target, matching_.MakeTarget(type, node.span));
  const vm::LabelId then_label = builder_.NewLabel(), else_label = builder_.NewLabel(), end = builder_.NewLabel();
  builder_.Branch(condition, then_label, else_label);
  builder_.Bind(then_label);
  INGOT_RETURN_IF_ERROR(LowerBranch(*node.then_branch, target));
  builder_.Jump(end);
  builder_.Bind(else_label);
  INGOT_RETURN_IF_ERROR(LowerBranch(*node.else_branch, target));
  builder_.Bind(end);
  return target;
}

Status FunctionLowering::LowerBranch(const SeqExprNode& seq, const Value& target) {
  const RegisterScope::Mark mark = scope_.Enter();
  for (const BindingBlock& block : seq.blocks) {
    for (const Binding& binding : block.bindings) INGOT_RETURN_IF_ERROR(LowerBinding(binding));
  }
  INGOT_ASSIGN_OR_RETURN(const Value value, operands_.Lower(seq.body));
  INGOT_RETURN_IF_ERROR(matching_.Store(target, value));
  scope_.Leave(mark);
  return Status();
}

Status FunctionLowering::LowerReturn(const SeqExprNode& seq) {
  builder_.Note("return");
  INGOT_ASSIGN_OR_RETURN(Value value, operands_.Lower(seq.body));
  const bool is_tuple = As<TupleTypeNode>(function_.body->body->type) != nullptr;
  const std::vector<Value> results = is_tuple ? FieldsOf(value, builder_) : std::vector<Value>{value};
  if (results.size() != outputs_.num_results()) {
    return Unsupported(function_.span, "results of which it is not known how many they are");
  }
  std::vector<vm::RegisterId> registers;
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t index = outputs_.IndexOf(i);
    if (index < 0) continue;  // the result is a state
    vm::RegisterId reg = Materialise(results[i], builder_);
    vm::Type type = signature_.results[static_cast<size_t>(index)].type;
    if (type.is_tensor()) type.storage = builder_.type(reg).storage;
    INGOT_ASSIGN_OR_RETURN(reg, matching_.Narrowed(reg, type, function_.span));
    if (type.is_tensor()) {
      // Between functions of the module an owned tensor is handed over without a copy. A result of an entry point must
      // be memory that only the caller refers to.
      const bool is_own = type.storage == vm::Storage::kOwned && function_.is_private &&
                          std::find(registers.begin(), registers.end(), reg) == registers.end();
      if (!is_own && !outputs_.IsAllocatedAs(reg, index)) reg = outputs_.CopyTo(reg, index);
    }
    registers.push_back(reg);
  }
  INGOT_RETURN_IF_ERROR(state_lowering_.Store(results));
  builder_.Return(std::move(registers));
  return Status();
}

}  // namespace ingot::lower
