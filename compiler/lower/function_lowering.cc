// The frame of lowering a function: the order of the steps (Run), registers, values, bindings, allocations and results.
// Branches, calls, comparisons of types, sequences and states are in the files that function_lowering.h lists.
#include "compiler/lower/function_lowering.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/plan_memory.h"
#include "compiler/lower/release.h"
#include "compiler/lower/vm_types.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "vm/verify/facts.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

FunctionLowering::FunctionLowering(ProgramLowering& program, const std::string& name, const Function& function)
    : program_(program),
      function_(function),
      name_(name),
      symbols_(SignatureSymbols(std::span(function->params.data(), NumInputs(*function)))),
      tail_calls_(FindTailCalls(name, function)),
      states_(program.states(name)) {
  int64_t next = 0;
  for (size_t i = 0; i < ResultTypes(function->body->body->type).size(); ++i) {
    result_index_.push_back(StateOfResult(states_, i) == nullptr ? next++ : -1);
  }
}

Result<vm::Function> FunctionLowering::Run() {
  const bool is_prepare = function_->attrs.Find(transform::kPrepareAttr) != nullptr;
  builder_.emplace(name_, program_.signature(*program_.FindFunction(name_)), !function_->is_private && !is_prepare);
  for (size_t i = 0; i < symbols_.size(); ++i) BindInt(symbols_[i], builder_->symbol(i));
  INGOT_RETURN_IF_ERROR(BindParams());
  INGOT_RETURN_IF_ERROR(BindPacked());
  if (!tail_calls_.calls.empty()) INGOT_RETURN_IF_ERROR(EnterLoop());
  INGOT_RETURN_IF_ERROR(BindParameterDims());
  FindOutputs(*function_->body);
  INGOT_RETURN_IF_ERROR(LowerTail(*function_->body));
  FinishPlan();
  vm::Function function = std::move(*builder_).Finish();
  ReleaseAtLastUse(function);
  return function;
}

Status FunctionLowering::BindPacked() {
  const AttrValue* packed_by = function_->attrs.Find(transform::kPackedByAttr);
  if (packed_by == nullptr) return Status();
  const vm::FunctionId prepare = *program_.FindFunction(*packed_by->get<std::string>());
  const size_t num_inputs = NumInputs(*function_);
  for (size_t i = num_inputs; i < function_->params.size(); ++i) {
    const Var& param = function_->params[i];
    INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(param->type, symbols_, vm::Storage::kConstant, param->span));
    if (!type.is_tensor() || !type.has_constant_dims()) {
      return Unsupported(param->span, "the packed parameter \"" + param->name + "\" is no tensor of constant dims");
    }
    vm::Constant constant{
        param->name, type.dtype, {}, {}, vm::PreparedBy{prepare, static_cast<uint32_t>(i - num_inputs)}};
    for (const vm::Dim& dim : type.dims) constant.dims.push_back(dim->constant());
    const vm::RegisterId dst = builder_->AddRegister(std::move(type));
    builder_->ConstTensor(dst, program_.AddPreparedConstant(std::move(constant)));
    values_[param.get()] = {dst, {}};
  }
  return Status();
}

void FunctionLowering::FindOutputs(const SeqExprNode& seq) {
  if (const Binding* last = TailBinding(seq)) {
    if (const IfNode* branch = As<IfNode>(last->value)) {
      FindOutputs(*branch->then_branch);
      FindOutputs(*branch->else_branch);
      return;
    }
  }
  struct Name {
    const VarNode* of;
    bool is_view;
  };
  std::unordered_map<const VarNode*, Name> names;
  for (const BindingBlock& block : seq.blocks) {
    for (const Binding& binding : block.bindings) {
      if (binding.is_match_cast()) continue;
      const VarNode* const viewed = ViewedVar(binding.value);
      if (const VarNode* source = viewed != nullptr ? viewed : As<VarNode>(binding.value)) {
        names[binding.var.get()] = {source, viewed != nullptr};
      }
    }
  }
  const TupleNode* tuple = As<TupleNode>(seq.body);
  if (tuple == nullptr && As<VarNode>(seq.body) != nullptr && As<TupleTypeNode>(seq.body->type) != nullptr) {
    for (const BindingBlock& block : seq.blocks) {
      for (const Binding& binding : block.bindings) {
        if (binding.var.get() == As<VarNode>(seq.body)) tuple = As<TupleNode>(binding.value);
      }
    }
  }
  const std::vector<Expr> results = tuple == nullptr ? std::vector<Expr>{seq.body} : tuple->fields;
  for (size_t i = 0; i < results.size(); ++i) {
    const VarNode* var = As<VarNode>(results[i]);
    bool is_view = false;
    for (auto name = names.find(var); name != names.end(); name = names.find(var)) {
      is_view |= name->second.is_view;
      var = name->second.of;
    }
    if (var == nullptr || i >= result_index_.size() || result_index_[i] < 0) continue;
    output_of_.emplace(var, Output{result_index_[i], is_view ? As<TensorTypeNode>(results[i]->type) : nullptr});
  }
}

// ---- Registers

void FunctionLowering::BindInt(const PrimVar& var, vm::RegisterId reg) {
  int_registers_[var] = reg;
  int_keys_.push_back(var);
  if (slot_vars_.size() <= reg.value) slot_vars_.resize(reg.value + 1);
  slot_vars_[reg.value] = var;
}

Result<DimCode> FunctionLowering::Dim(const PrimExpr& dim) { return codegen::LowerToDimCode(dim, slot_vars_); }

Result<std::vector<DimCode>> FunctionLowering::Dims(const std::vector<PrimExpr>& dims) {
  std::vector<DimCode> codes;
  for (const PrimExpr& dim : dims) {
    INGOT_ASSIGN_OR_RETURN(DimCode code, Dim(dim));
    codes.push_back(std::move(code));
  }
  return codes;
}

Result<vm::RegisterId> FunctionLowering::IntRegister(const PrimExpr& expr) {
  if (const PrimVar var = AsRef<PrimVarNode>(expr)) {
    if (auto it = int_registers_.find(var); it != int_registers_.end()) return it->second;
  }
  INGOT_ASSIGN_OR_RETURN(DimCode code, Dim(expr));
  const std::string key = code.ToString();
  if (auto it = dim_registers_.find(key); it != dim_registers_.end()) return it->second;
  const vm::RegisterId reg = builder_->AddRegister(vm::Type::Int());
  builder_->Dim(reg, std::move(code));
  dim_registers_.emplace(key, reg);
  dim_keys_.push_back(key);
  return reg;
}

Result<vm::RegisterId> FunctionLowering::Register(const Expr& expr) {
  INGOT_ASSIGN_OR_RETURN(Value value, LowerValue(expr));
  return Materialise(value);
}

Result<std::vector<vm::RegisterId>> FunctionLowering::Registers(const std::vector<Expr>& exprs) {
  std::vector<vm::RegisterId> registers;
  for (const Expr& expr : exprs) {
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Register(expr));
    registers.push_back(reg);
  }
  return registers;
}

Result<vm::RegisterId> FunctionLowering::Materialise(const Value& value) {
  if (value.reg) return *value.reg;
  std::vector<vm::RegisterId> elements;
  std::vector<vm::Type> types;
  for (const Value& field : value.fields) {
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Materialise(field));
    elements.push_back(Owned(reg));
    types.push_back(builder_->type(elements.back()));
  }
  const vm::RegisterId dst = builder_->AddRegister(vm::Type::Tuple(std::move(types)));
  builder_->Tuple(dst, std::move(elements));
  return dst;
}

std::vector<FunctionLowering::Value> FunctionLowering::FieldsOf(const Value& value) {
  if (!value.reg) return value.fields;
  std::vector<Value> fields;
  const std::vector<vm::Type> types = builder_->type(*value.reg).elements;
  for (size_t i = 0; i < types.size(); ++i) {
    const vm::RegisterId dst = builder_->AddRegister(types[i]);
    builder_->TupleGet(dst, *value.reg, static_cast<int64_t>(i));
    fields.push_back({dst, {}});
  }
  return fields;
}

vm::RegisterId FunctionLowering::Copied(vm::RegisterId src) {
  vm::Type type = builder_->type(src);
  type.storage = vm::Storage::kOwned;
  const vm::RegisterId dst = builder_->AddRegister(std::move(type));
  builder_->Copy(dst, src, 0);
  return dst;
}

vm::RegisterId FunctionLowering::Owned(vm::RegisterId src) {
  const vm::Type& type = builder_->type(src);
  return type.is_tensor() && type.storage != vm::Storage::kOwned ? Copied(src) : src;
}

void FunctionLowering::FollowEntry(vm::RegisterId to, vm::RegisterId from) {
  if (auto it = entry_of_.find(from.value); it != entry_of_.end()) entry_of_[to.value] = it->second;
}

// ---- Values

Result<FunctionLowering::Value> FunctionLowering::LowerValue(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kVar: {
      const auto it = values_.find(As<VarNode>(expr));
      INGOT_CHECK(it != values_.end(), "a variable is defined before its use");
      return it->second;
    }
    case ExprKind::kConstant: {
      const ConstantNode& constant = *As<ConstantNode>(expr);
      const vm::ConstantId id = program_.AddConstant(constant);
      auto [it, is_new] = constant_registers_.try_emplace(id.value);
      if (is_new) {
        std::vector<vm::Dim> dims;
        for (int64_t dim : constant.data->dims()) dims.emplace_back(DimCode(dim));
        it->second =
            builder_->AddRegister(vm::Type::Tensor(constant.data->dtype(), std::move(dims), vm::Storage::kConstant));
        builder_->ConstTensor(it->second, id);
        constant_keys_.push_back(id.value);
      }
      return Value{it->second, {}};
    }
    case ExprKind::kTuple: {
      Value value;
      for (const Expr& field : As<TupleNode>(expr)->fields) {
        INGOT_ASSIGN_OR_RETURN(Value lowered, LowerValue(field));
        value.fields.push_back(std::move(lowered));
      }
      return value;
    }
    case ExprKind::kShapeExpr: {
      const auto& dims = As<ShapeExprNode>(expr)->dims;
      INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> codes, Dims(dims));
      const vm::RegisterId dst = builder_->AddRegister(vm::Type::Shape(TypeDims(dims, symbols_)));
      builder_->Shape(dst, std::move(codes));
      return Value{dst, {}};
    }
    case ExprKind::kPrimValue:
      return LowerPrimValue(As<PrimValueNode>(expr)->value);
    case ExprKind::kStringValue: {
      const vm::RegisterId dst = builder_->AddRegister(vm::Type::String());
      builder_->ConstString(dst, As<StringValueNode>(expr)->value);
      return Value{dst, {}};
    }
    case ExprKind::kDataTypeValue: {
      const vm::RegisterId dst = builder_->AddRegister(vm::Type::DType());
      builder_->ConstDType(dst, As<DataTypeValueNode>(expr)->value);
      return Value{dst, {}};
    }
    case ExprKind::kTupleGetItem:
      return LowerField(*As<TupleGetItemNode>(expr));
    case ExprKind::kCall:
      return LowerCall(*As<CallNode>(expr));
    case ExprKind::kGlobalVar:
      return MakeClosure(As<GlobalVarNode>(expr)->name, {}, expr->span);
    case ExprKind::kIf:  // an If is bound to a variable (LowerBinding)
    case ExprKind::kOp:
    case ExprKind::kExternFunc:
    case ExprKind::kSeqExpr:
    case ExprKind::kFunction:
    case ExprKind::kPrimFunc:
      break;
  }
  return Unsupported(expr->span, "operators and external functions as values cannot be lowered to bytecode");
}

Result<FunctionLowering::Value> FunctionLowering::LowerPrimValue(const PrimExpr& value) {
  if (const FloatImmNode* imm = As<FloatImmNode>(value)) {
    const vm::RegisterId dst = builder_->AddRegister(vm::Type::Float());
    builder_->ConstFloat(dst, imm->value);
    return Value{dst, {}};
  }
  if (value->dtype.is_bool()) {
    INGOT_ASSIGN_OR_RETURN(DimCode code, Dim(value));
    const vm::RegisterId dst = builder_->AddRegister(vm::Type::Bool());
    builder_->Test(dst, std::move(code));
    return Value{dst, {}};
  }
  INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, IntRegister(value));
  return Value{reg, {}};
}

Result<FunctionLowering::Value> FunctionLowering::LowerField(const TupleGetItemNode& item) {
  INGOT_ASSIGN_OR_RETURN(Value tuple, LowerValue(item.tuple));
  const auto index = static_cast<size_t>(item.index);
  if (!tuple.reg) return tuple.fields.at(index);
  const vm::Type& type = builder_->type(*tuple.reg);
  if (index >= type.elements.size()) return Unsupported(item.span, "an element of what is not known to be a tuple");
  const vm::RegisterId dst = builder_->AddRegister(vm::Type(type.elements[index]));
  builder_->TupleGet(dst, *tuple.reg, item.index);
  return Value{dst, {}};
}

// ---- Bindings

Status FunctionLowering::LowerBinding(const Binding& binding) {
  const auto lower = [&]() -> Status {
    // Names, not spans: an executable is the same whether it came from a file or from its text.
    if (binding.var->name != "_") builder_->Note(binding.var->name);
    if (const CallNode* call = As<CallNode>(binding.value)) {
      if (const op::OpRow* row = op::RowOf(Ref<CallNode>(call)); row == op::FindOp("builtin.alloc_tensor")) {
        return LowerAlloc(binding, *call);
      }
    }
    if (binding.is_match_cast()) return LowerMatchCast(binding);
    const IfNode* branch = As<IfNode>(binding.value);
    INGOT_ASSIGN_OR_RETURN(Value value,
                           branch != nullptr ? LowerIf(*branch, binding.var->type) : LowerValue(binding.value));
    values_[binding.var.get()] = std::move(value);
    return Status();
  };
  Status status = lower();
  if (status.ok()) return status;
  return std::move(status).WithContext("\"" + binding.var->name + "\"");
}

// Whether two tensor types surely have the same dims. Two dims that are unknown to their types may differ.
static bool HaveEqualDims(const vm::Type& a, const vm::Type& b) {
  return a == b && std::ranges::all_of(a.dims, [](const vm::Dim& dim) { return dim.has_value(); });
}

Status FunctionLowering::LowerAlloc(const Binding& binding, const CallNode& call) {
  const auto type = Downcast<TensorTypeNode>(call.type);
  INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, LowerType(call.type, symbols_, vm::Storage::kOwned, call.span));
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(*type->dims));
  INGOT_ASSIGN_OR_RETURN(const std::optional<vm::RegisterId> output, MakeOutput(binding.var.get(), vm_type, dims));
  if (output && HaveEqualDims(builder_->type(*output), vm_type)) {
    values_[binding.var.get()] = {*output, {}};
    return Status();
  }
  const vm::RegisterId dst = builder_->AddRegister(std::move(vm_type));
  if (output) {
    builder_->View(dst, *output, DimCode(0), std::move(dims));
    lies_in_.emplace(dst.value, *output);
  } else {
    builder_->Alloc(dst, std::move(dims));
  }
  values_[binding.var.get()] = {dst, {}};
  return Status();
}

Result<std::optional<vm::RegisterId>> FunctionLowering::MakeOutput(const VarNode* allocation, const vm::Type& type,
                                                                   const std::vector<DimCode>& dims) {
  const auto output = output_of_.find(allocation);
  if (output == output_of_.end()) return std::optional<vm::RegisterId>();
  const auto& [index, viewed_as] = output->second;
  vm::Type made = type;
  std::vector<DimCode> made_dims = dims;
  if (viewed_as != nullptr) {
    if (!viewed_as->dims || *viewed_as->dtype != type.dtype) return std::optional<vm::RegisterId>();
    made.dims = TypeDims(*viewed_as->dims, symbols_);
    Result<std::vector<DimCode>> known = Dims(*viewed_as->dims);
    if (!known.ok()) return std::optional<vm::RegisterId>();  // some dims are computed later
    made_dims = *std::move(known);
  }
  const auto& results = program_.signature(*program_.FindFunction(name_)).results;
  if (!vm::IsAssignable(results.at(static_cast<size_t>(index)).type, made)) return std::optional<vm::RegisterId>();
  const vm::RegisterId dst = builder_->AddRegister(std::move(made));
  builder_->AllocOutput(dst, index, std::move(made_dims));
  made_as_output_[dst.value] = index;
  return std::optional(dst);
}

Result<FunctionLowering::Value> FunctionLowering::LowerStorage(const CallNode& call) {
  const PrimExpr& peak = As<ShapeExprNode>(call.args.at(0))->dims.at(0);
  if (AsConstInt(peak)) size_bounds_ = function_->attrs;
  INGOT_ASSIGN_OR_RETURN(DimCode size, Dim(peak));
  builder_->plan().arenas.push_back({0, std::move(size)});
  return Value{};
}

Result<FunctionLowering::Value> FunctionLowering::LowerPlacedTensor(const CallNode& call) {
  const auto type = Downcast<TensorTypeNode>(call.type);
  INGOT_ASSIGN_OR_RETURN(DimCode offset, Dim(As<PrimValueNode>(call.args.at(1))->value));
  INGOT_ASSIGN_OR_RETURN(DimCode size, Dim(AlignedSizeBytes(*type->dims, *type->dtype, size_bounds_)));
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(*type->dims));
  INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, LowerType(call.type, symbols_, vm::Storage::kArena, call.span));
  const uint32_t now = builder_->next_instruction();
  const vm::PlanEntryId entry = builder_->AddPlanEntry({0, std::move(offset), std::move(size), now, now, std::nullopt});
  const vm::RegisterId dst = builder_->AddRegister(std::move(vm_type));
  builder_->PlanView(dst, entry, std::move(dims));
  entry_of_[dst.value] = entry.value;
  return Value{dst, {}};
}

Result<FunctionLowering::Value> FunctionLowering::LowerView(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(vm::RegisterId src, Register(call.args.at(0)));
  const auto type = Downcast<TensorTypeNode>(call.type);
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(*type->dims));
  INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, LowerType(call.type, symbols_, builder_->type(src).storage, call.span));
  const auto whole = lies_in_.find(src.value);
  if (whole != lies_in_.end() && HaveEqualDims(builder_->type(whole->second), vm_type)) return Value{whole->second, {}};
  const vm::RegisterId dst = builder_->AddRegister(std::move(vm_type));
  builder_->View(dst, src, DimCode(0), std::move(dims));
  if (whole != lies_in_.end()) lies_in_.emplace(dst.value, whole->second);
  FollowEntry(dst, src);
  return Value{dst, {}};
}

// Copies the elements into a view of one row. The call's value is the buffer itself.
Result<FunctionLowering::Value> FunctionLowering::LowerRowWrite(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId buffer, Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId row, Register(call.args.at(1)));
  const auto* index = As<PrimValueNode>(call.args.at(2));
  const auto* type = As<TensorTypeNode>(call.type);
  if (index == nullptr || !type->dims || type->dtype->total_bits() % 8 != 0) {
    return Unsupported(call.span, "a row of a tensor of unknown shape, or of elements below a byte");
  }
  if (!vm::IsWritable(builder_->type(buffer).storage)) return Unsupported(call.span, "a row of what cannot be written");
  std::vector<PrimExpr> row_dims(type->dims->begin() + 1, type->dims->end());
  PrimExpr offset = index->value * Int64(type->dtype->total_bits() / 8);
  for (const PrimExpr& dim : row_dims) offset = offset * dim;
  INGOT_ASSIGN_OR_RETURN(DimCode offset_code, Dim(offset));
  INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(row_dims));
  const vm::RegisterId view = builder_->AddRegister(
      vm::Type::Tensor(*type->dtype, TypeDims(row_dims, symbols_), builder_->type(buffer).storage));
  builder_->View(view, buffer, std::move(offset_code), std::move(dims));
  FollowEntry(view, buffer);
  builder_->CopyInto(view, row, 0);
  return Value{buffer, {}};
}

// ---- Results

Status FunctionLowering::LowerReturn(const SeqExprNode& seq) {
  builder_->Note("return");
  INGOT_ASSIGN_OR_RETURN(Value value, LowerValue(seq.body));
  const bool is_tuple = As<TupleTypeNode>(function_->body->body->type) != nullptr;
  const std::vector<Value> results = is_tuple ? FieldsOf(value) : std::vector<Value>{value};
  const auto& wanted = program_.signature(*program_.FindFunction(name_)).results;
  if (results.size() != result_index_.size()) {
    return Unsupported(function_->span, "results of which it is not known how many they are");
  }
  std::vector<vm::RegisterId> registers;
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t index = result_index_[i];
    if (index < 0) continue;  // the result is a state
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Materialise(results[i]));
    vm::Type type = wanted[static_cast<size_t>(index)].type;
    if (type.is_tensor()) type.storage = builder_->type(reg).storage;
    INGOT_ASSIGN_OR_RETURN(reg, Narrowed(reg, type, function_->span));
    if (type.is_tensor()) {
      const auto made = made_as_output_.find(reg.value);
      const bool is_output = made != made_as_output_.end() && made->second == index;
      // Between functions of the module an owned tensor is handed over without a copy. A result of an entry point must
      // be memory that only the caller refers to.
      const bool is_own = type.storage == vm::Storage::kOwned && function_->is_private &&
                          std::find(registers.begin(), registers.end(), reg) == registers.end();
      if (!is_output && !is_own) {
        INGOT_ASSIGN_OR_RETURN(reg, CopiedToOutput(reg, index));
      }
    }
    registers.push_back(reg);
  }
  INGOT_RETURN_IF_ERROR(StoreStates(results));
  builder_->Return(std::move(registers));
  return Status();
}

Result<vm::RegisterId> FunctionLowering::CopiedToOutput(vm::RegisterId src, int64_t index) {
  vm::Type type = builder_->type(src);
  type.storage = vm::Storage::kOwned;
  std::vector<DimCode> dims;
  for (size_t axis = 0; axis < type.dims.size(); ++axis) {
    if (type.dims[axis]) {
      dims.push_back(*type.dims[axis]);
      continue;
    }
    const vm::RegisterId dim = builder_->AddRegister(vm::Type::Int());
    builder_->TensorDim(dim, src, static_cast<int64_t>(axis));
    dims.push_back(DimCode::Slot(dim.value));
  }
  const vm::RegisterId dst = builder_->AddRegister(std::move(type));
  builder_->AllocOutput(dst, index, std::move(dims));
  builder_->CopyInto(dst, src, 0);
  return dst;
}

void FunctionLowering::FinishPlan() {
  if (entry_of_.empty()) return;
  const std::vector<vm::Instruction>& code = builder_->code();
  for (uint32_t pc = 0; pc < code.size(); ++pc) {
    vm::ForEachRegister(code[pc], [&](vm::RegisterId id, bool) {
      if (auto it = entry_of_.find(id.value); it != entry_of_.end()) builder_->plan().entries[it->second].last = pc;
    });
  }
}

}  // namespace ingot::lower
