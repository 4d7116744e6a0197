// Branches and loops. A part of compiler/lower/function_lowering.h.
#include <algorithm>
#include <utility>

#include "compiler/lower/function_lowering.h"
#include "compiler/lower/vm_types.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

Status FunctionLowering::LowerTail(const SeqExprNode& seq) {
  const Binding* last = TailBinding(seq);
  const IfNode* branch = last == nullptr ? nullptr : As<IfNode>(last->value);
  const bool is_jump = last != nullptr && tail_calls_.Contains(last->value);
  for (const BindingBlock& block : seq.blocks) {
    for (const Binding& binding : block.bindings) {
      if (&binding == last && (branch != nullptr || is_jump)) break;
      INGOT_RETURN_IF_ERROR(LowerBinding(binding));
    }
  }
  if (branch == nullptr && !is_jump) return LowerReturn(seq);
  builder_->Note(last->var->name);
  Status status = branch != nullptr ? LowerTailIf(*branch) : LowerBackEdge(*As<CallNode>(last->value));
  if (status.ok()) return status;
  return std::move(status).WithContext("\"" + last->var->name + "\"");
}

// Each branch ends by leaving the function, or by jumping to its beginning.
Status FunctionLowering::LowerTailIf(const IfNode& node) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId condition, Condition(node.condition));
  const vm::LabelId then_label = builder_->NewLabel(), else_label = builder_->NewLabel();
  builder_->Branch(condition, then_label, else_label);
  for (const auto& [label, seq] : {std::pair(then_label, node.then_branch), std::pair(else_label, node.else_branch)}) {
    builder_->Bind(label);
    const ScopeMark mark = EnterScope();
    INGOT_RETURN_IF_ERROR(LowerTail(*seq));
    LeaveScope(mark);
  }
  return Status();
}

Status FunctionLowering::EnterLoop() {
  loop_registers_.resize(function_->params.size());
  for (size_t i = 0; i < function_->params.size(); ++i) {
    Value& value = values_[function_->params[i].get()];
    if (!tail_calls_.is_carried[i]) continue;
    const vm::RegisterId param = *value.reg;
    vm::Type type = builder_->type(param);
    const bool is_tensor = type.is_tensor();
    if (is_tensor) type.storage = vm::Storage::kOwned;
    const vm::RegisterId reg = builder_->AddRegister(std::move(type));
    if (is_tensor) {
      builder_->Copy(reg, param, 0);
    } else {
      builder_->Move(reg, param);
    }
    loop_registers_[i] = reg;
    value.reg = reg;
  }
  loop_ = builder_->NewLabel();
  builder_->Bind(*loop_);
  return Status();
}

// All arguments are computed before the first parameter is written, since an argument may read any parameter.
Status FunctionLowering::LowerBackEdge(const CallNode& call) {
  std::vector<std::pair<size_t, vm::RegisterId>> arguments;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.args[i].same_as(function_->params[i])) continue;
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId reg, Register(call.args[i]));
    arguments.emplace_back(i, reg);
  }
  for (auto& [i, reg] : arguments) {
    const auto is_written = [&, argument = reg](const auto& other) { return loop_registers_[other.first] == argument; };
    if (std::none_of(arguments.begin(), arguments.end(), is_written)) continue;
    const vm::RegisterId copy = builder_->AddRegister(vm::Type(builder_->type(reg)));
    builder_->Move(copy, reg);
    reg = copy;
  }
  for (const auto& [i, reg] : arguments) INGOT_RETURN_IF_ERROR(Assign(loop_registers_[i], reg));
  builder_->Jump(*loop_);
  return Status();
}

Result<FunctionLowering::Value> FunctionLowering::LowerIf(const IfNode& node, const Type& type) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId condition, Condition(node.condition));
  INGOT_ASSIGN_OR_RETURN(Value target, MakeTarget(type, node.span));
  const vm::LabelId then_label = builder_->NewLabel(), else_label = builder_->NewLabel(), end = builder_->NewLabel();
  builder_->Branch(condition, then_label, else_label);
  builder_->Bind(then_label);
  INGOT_RETURN_IF_ERROR(LowerBranch(*node.then_branch, target));
  builder_->Jump(end);
  builder_->Bind(else_label);
  INGOT_RETURN_IF_ERROR(LowerBranch(*node.else_branch, target));
  builder_->Bind(end);
  return target;
}

Status FunctionLowering::LowerBranch(const SeqExprNode& seq, const Value& target) {
  const ScopeMark mark = EnterScope();
  for (const BindingBlock& block : seq.blocks) {
    for (const Binding& binding : block.bindings) INGOT_RETURN_IF_ERROR(LowerBinding(binding));
  }
  INGOT_ASSIGN_OR_RETURN(const Value value, LowerValue(seq.body));
  INGOT_RETURN_IF_ERROR(Store(target, value));
  LeaveScope(mark);
  return Status();
}

Result<vm::RegisterId> FunctionLowering::Condition(const Expr& expr) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId value, Register(expr));
  const vm::Type& type = builder_->type(value);
  if (type.kind == vm::ValueKind::kBool) return value;
  const bool is_element = type.is_tensor() && std::all_of(type.dims.begin(), type.dims.end(), [](const vm::Dim& dim) {
                            return dim && dim->is_constant() && dim->constant() == 1;
                          });
  vm::RegisterId number = value;
  if (is_element && type.dtype == DataType::Bool()) {
    const vm::RegisterId condition = builder_->AddRegister(vm::Type::Bool());
    builder_->LoadBool(condition, value, DimCode(0));
    return condition;
  }
  if (is_element && type.dtype.is_integral() && type.dtype.is_scalar() && type.dtype.bits >= 8) {
    number = builder_->AddRegister(vm::Type::Int());
    builder_->LoadInt(number, value, DimCode(0));
  } else if (type.kind != vm::ValueKind::kInt) {
    return Unsupported(expr->span, "a condition that is no truth value and no integer");
  }
  const vm::RegisterId condition = builder_->AddRegister(vm::Type::Bool());
  builder_->Test(condition, DimCode::Binary(DimOp::kNe, DimCode::Slot(number.value), DimCode(0)));
  return condition;
}

Result<FunctionLowering::Value> FunctionLowering::MakeTarget(const Type& type, const Span& span) {
  if (const TupleTypeNode* tuple = As<TupleTypeNode>(type)) {
    Value target;
    for (const Type& field : tuple->fields) {
      INGOT_ASSIGN_OR_RETURN(Value value, MakeTarget(field, span));
      target.fields.push_back(std::move(value));
    }
    return target;
  }
  INGOT_ASSIGN_OR_RETURN(vm::Type lowered, LowerType(type, symbols_, vm::Storage::kOwned, span));
  return Value{builder_->AddRegister(std::move(lowered)), {}};
}

Status FunctionLowering::Store(const Value& target, const Value& value) {
  if (target.reg) {
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId reg, Materialise(value));
    return Assign(*target.reg, reg);
  }
  const std::vector<Value> fields = FieldsOf(value);
  INGOT_CHECK(fields.size() == target.fields.size(), "a tuple has as many fields as its type says");
  for (size_t i = 0; i < fields.size(); ++i) INGOT_RETURN_IF_ERROR(Store(target.fields[i], fields[i]));
  return Status();
}

Status FunctionLowering::Assign(vm::RegisterId to, vm::RegisterId from) {
  const vm::Type wanted = builder_->type(to);
  const vm::Type type = builder_->type(from);
  if (type.is_tensor() && type.storage != wanted.storage) {
    vm::Type copied = type;
    copied.storage = vm::Storage::kOwned;
    if (vm::IsAssignable(wanted, copied)) {
      builder_->Copy(to, from, 0);
      return Status();
    }
    from = Copied(from);
  }
  if (vm::IsAssignable(wanted, builder_->type(from))) {
    builder_->Move(to, from);
    return Status();
  }
  // Dims whose equality no formula proves are compared when the program runs.
  INGOT_ASSIGN_OR_RETURN(from, Narrowed(from, wanted, Span()));
  builder_->Move(to, from);
  return Status();
}

void FunctionLowering::LeaveScope(const ScopeMark& mark) {
  for (; constant_keys_.size() > mark.constants; constant_keys_.pop_back()) {
    constant_registers_.erase(constant_keys_.back());
  }
  for (; dim_keys_.size() > mark.dims; dim_keys_.pop_back()) dim_registers_.erase(dim_keys_.back());
  for (; int_keys_.size() > mark.ints; int_keys_.pop_back()) {
    const auto bound = int_registers_.find(int_keys_.back());
    slot_vars_[bound->second.value] = nullptr;
    int_registers_.erase(bound);
  }
}

}  // namespace ingot::lower
