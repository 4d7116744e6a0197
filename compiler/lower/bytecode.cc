#include "compiler/lower/bytecode.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "compiler/codegen/dim_code_lowering.h"
#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/destination_passing.h"
#include "compiler/lower/plan_memory.h"
#include "compiler/op/registry.h"
#include "compiler/transform/graph_util.h"
#include "vm/builtins.h"
#include "vm/program_builder.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

Status Unsupported(const Span& span, const std::string& what) {
  return Status(StatusCode::kUnsupportedModel, (span.is_known() ? span.ToString() + ": " : std::string()) + what);
}

// What the functions of a program share while they are lowered.
class ProgramLowering {
 public:
  ProgramLowering(const IRModule& module, std::vector<vm::Kernel> kernels) : module_(module) {
    program_.kernels = std::move(kernels);
    for (uint32_t i = 0; i < program_.kernels.size(); ++i) kernel_ids_[program_.kernels[i].name] = vm::KernelId(i);
    uint32_t next = 0;
    for (const IRModule::Entry& entry : module.functions()) {
      const PrimFuncNode* prim = As<PrimFuncNode>(entry.function);
      if (prim != nullptr && prim->is_private) continue;
      function_ids_[entry.var->name] = vm::FunctionId(next++);
    }
  }

  const IRModule& module() const { return module_; }
  vm::Program& program() { return program_; }
  const vm::KernelId* FindKernel(const std::string& name) const {
    auto it = kernel_ids_.find(name);
    return it == kernel_ids_.end() ? nullptr : &it->second;
  }
  vm::FunctionId function_id(const std::string& name) const { return function_ids_.at(name); }

  vm::ConstantId AddConstant(const ConstantNode& constant) {
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
  // A constant that is a result of a function of the program.
  vm::ConstantId AddPreparedConstant(vm::Constant constant) {
    program_.constants.push_back(std::move(constant));
    constant_data_.push_back(nullptr);  // shared with none
    return vm::ConstantId(static_cast<uint32_t>(program_.constants.size() - 1));
  }

 private:
  const IRModule& module_;
  vm::Program program_;
  std::unordered_map<std::string, vm::KernelId> kernel_ids_;
  std::unordered_map<std::string, vm::FunctionId> function_ids_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> constants_by_hash_;
  std::vector<std::shared_ptr<const ConstantData>> constant_data_;
};

// Symbols of a signature: the variables that the parameters' types mention, by first occurrence.
class Symbols {
 public:
  void Add(const PrimVar& var, const Attrs& attrs) {
    if (std::any_of(vars_.begin(), vars_.end(), [&](const PrimVar& v) { return v.same_as(var); })) return;
    vm::Symbol symbol{Unique(var->name), 0, INT64_MAX};
    symbol.min = Bound(attrs, "tir_var_lower_bound", var->name, symbol.min);
    symbol.max = Bound(attrs, "tir_var_upper_bound", var->name, symbol.max);
    vars_.push_back(var);
    symbols_.push_back(std::move(symbol));
  }
  const std::vector<vm::Symbol>& symbols() const { return symbols_; }
  const std::vector<PrimVar>& vars() const { return vars_; }  // variable i is symbol i

 private:
  static int64_t Bound(const Attrs& attrs, const char* attr, const std::string& name, int64_t fallback) {
    const AttrValue* dict = attrs.Find(attr);
    const AttrDict* items = dict == nullptr ? nullptr : dict->get<AttrDict>();
    if (items == nullptr) return fallback;
    for (const auto& [key, value] : *items) {
      if (key == name && value.get<int64_t>() != nullptr) return *value.get<int64_t>();
    }
    return fallback;
  }
  std::string Unique(const std::string& name) const {
    std::string unique = name;
    for (int i = 1; std::any_of(symbols_.begin(), symbols_.end(), [&](const auto& s) { return s.name == unique; });
         ++i) {
      unique = name + std::to_string(i);
    }
    return unique;
  }
  std::vector<vm::Symbol> symbols_;
  std::vector<PrimVar> vars_;
};

// A dim as a formula over the symbols; unknown when it mentions anything else.
vm::Dim TypeDim(const PrimExpr& dim, const Symbols& symbols) {
  Result<DimCode> code = codegen::LowerToDimCode(dim, symbols.vars());
  return code.ok() ? vm::Dim(std::move(code).value()) : std::nullopt;
}

std::vector<vm::Dim> TypeDims(const std::vector<PrimExpr>& dims, const Symbols& symbols) {
  std::vector<vm::Dim> result;
  for (const PrimExpr& dim : dims) result.push_back(TypeDim(dim, symbols));
  return result;
}

Result<vm::Type> LowerType(const Type& type, const Symbols& symbols, vm::Storage storage, const Span& span) {
  if (type == nullptr) return Unsupported(span, "a value without a type");
  switch (type->kind) {
    case TypeKind::kObject:
      return vm::Type::Object("any");
    case TypeKind::kPrim: {
      const DataType dtype = Downcast<PrimTypeNode>(type)->dtype;
      if (dtype.is_bool()) return vm::Type::Bool();
      if (dtype.is_integral()) return vm::Type::Int();
      if (dtype.is_floating()) return vm::Type::Float();
      return Unsupported(span, "a scalar of type " + dtype.ToString());
    }
    case TypeKind::kShape: {
      auto shape = Downcast<ShapeTypeNode>(type);
      if (shape->rank < 0) return Unsupported(span, "a shape of unknown rank");
      if (!shape->dims) return vm::Type::Shape(std::vector<vm::Dim>(static_cast<size_t>(shape->rank)));
      return vm::Type::Shape(TypeDims(*shape->dims, symbols));
    }
    case TypeKind::kTensor: {
      auto tensor = Downcast<TensorTypeNode>(type);
      if (tensor->rank < 0 || !tensor->dtype) return Unsupported(span, "a tensor of unknown rank or dtype");
      if (!tensor->dims) {
        return vm::Type::Tensor(*tensor->dtype, std::vector<vm::Dim>(static_cast<size_t>(tensor->rank)), storage);
      }
      return vm::Type::Tensor(*tensor->dtype, TypeDims(*tensor->dims, symbols), storage);
    }
    case TypeKind::kTuple: {
      std::vector<vm::Type> elements;
      for (const Type& field : Downcast<TupleTypeNode>(type)->fields) {
        INGOT_ASSIGN_OR_RETURN(vm::Type element, LowerType(field, symbols, vm::Storage::kOwned, span));
        elements.push_back(std::move(element));
      }
      return vm::Type::Tuple(std::move(elements));
    }
    case TypeKind::kCallable:
      return Unsupported(span, "functions as values");
  }
  INGOT_UNREACHABLE();
}

class FunctionLowering {
 public:
  FunctionLowering(ProgramLowering& program, const std::string& name, const Function& function)
      : program_(program), function_(function), name_(name) {}

  Result<vm::Function> Run() {
    INGOT_ASSIGN_OR_RETURN(vm::Signature signature, MakeSignature());
    const bool is_prepare = function_->attrs.Find(transform::kPrepareAttr) != nullptr;
    builder_.emplace(name_, std::move(signature), !function_->is_private && !is_prepare);
    for (size_t i = 0; i < symbols_.vars().size(); ++i) BindInt(symbols_.vars()[i], builder_->symbol(i));
    for (size_t i = 0; i < NumInputs(); ++i) values_[function_->params[i].get()] = {builder_->param(i), {}};
    INGOT_RETURN_IF_ERROR(BindPacked());
    FindOutputs();
    for (const BindingBlock& block : function_->body->blocks) {
      for (const Binding& binding : block.bindings) {
        Status status = LowerBinding(binding);
        if (!status.ok())
          return std::move(status).WithContext("function \"" + name_ + "\", \"" + binding.var->name + "\"");
      }
    }
    INGOT_RETURN_IF_ERROR(LowerReturn());
    FinishPlan();
    return std::move(*builder_).Finish();
  }

 private:
  // A value: one register, or the fields of a tuple that was never made.
  struct Value {
    std::optional<vm::RegisterId> reg;
    std::vector<Value> fields;
  };

  static std::vector<Type> ResultTypes(const Type& type) {
    const TupleTypeNode* tuple = As<TupleTypeNode>(type);
    return tuple == nullptr ? std::vector<Type>{type} : tuple->fields;
  }

  Result<vm::Signature> MakeSignature() {
    for (size_t i = 0; i < NumInputs(); ++i) {
      for (const PrimVar& var : FreePrimVars(function_->params[i]->type)) symbols_.Add(var, function_->attrs);
    }
    vm::Signature signature;
    signature.symbols = symbols_.symbols();
    for (size_t i = 0; i < NumInputs(); ++i) {
      const Var& param = function_->params[i];
      INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(param->type, symbols_, vm::Storage::kBorrowed, param->span));
      signature.params.push_back({NameAt("input_names", i, param->name), std::move(type)});
    }
    const std::vector<Type> results = ResultTypes(function_->body->body->type);
    for (size_t i = 0; i < results.size(); ++i) {
      INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(results[i], symbols_, vm::Storage::kOwned, function_->span));
      const std::string name = results.size() == 1 ? "output" : "output_" + std::to_string(i);
      signature.results.push_back({NameAt("output_names", i, name), std::move(type)});
    }
    return signature;
  }

  // What the caller passes; the parameters after them are results of the function that prepares the weights.
  size_t NumInputs() const {
    const AttrValue* count = function_->attrs.Find("num_input");
    if (function_->attrs.Find(transform::kPackedByAttr) == nullptr || count == nullptr) return function_->params.size();
    return static_cast<size_t>(*count->get<int64_t>());
  }

  Status BindPacked() {
    const AttrValue* packed_by = function_->attrs.Find(transform::kPackedByAttr);
    if (packed_by == nullptr) return Status();
    const vm::FunctionId prepare = program_.function_id(*packed_by->get<std::string>());
    for (size_t i = NumInputs(); i < function_->params.size(); ++i) {
      const Var& param = function_->params[i];
      INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(param->type, symbols_, vm::Storage::kConstant, param->span));
      if (!type.is_tensor() || !type.has_constant_dims()) {
        return Unsupported(param->span, "the packed parameter \"" + param->name + "\" is no tensor of constant dims");
      }
      vm::Constant constant{
          param->name, type.dtype, {}, {}, vm::PreparedBy{prepare, static_cast<uint32_t>(i - NumInputs())}};
      for (const vm::Dim& dim : type.dims) constant.dims.push_back(dim->constant());
      const vm::RegisterId dst = builder_->AddRegister(std::move(type));
      builder_->ConstTensor(dst, program_.AddPreparedConstant(std::move(constant)));
      values_[param.get()] = {dst, {}};
    }
    return Status();
  }

  // Entry i of a list of names among the function's attributes, or the fallback.
  std::string NameAt(const char* attr, size_t i, const std::string& fallback) const {
    const AttrValue* names = function_->attrs.Find(attr);
    const AttrList* list = names == nullptr ? nullptr : names->get<AttrList>();
    const std::string* name = list != nullptr && i < list->size() ? (*list)[i].get<std::string>() : nullptr;
    return name == nullptr ? fallback : *name;
  }

  // The allocation behind each result, where there is one: it is made as the caller's output.
  void FindOutputs() {
    std::unordered_map<const VarNode*, const VarNode*> alias;
    for (const BindingBlock& block : function_->body->blocks) {
      for (const Binding& binding : block.bindings) {
        if (const VarNode* source = As<VarNode>(binding.value); source != nullptr && !binding.is_match_cast()) {
          alias[binding.var.get()] = source;
        }
      }
    }
    const Expr& body = function_->body->body;
    const TupleNode* tuple = As<TupleNode>(body);
    if (tuple == nullptr && As<VarNode>(body) != nullptr && As<TupleTypeNode>(body->type) != nullptr) {
      for (const BindingBlock& block : function_->body->blocks) {
        for (const Binding& binding : block.bindings) {
          if (binding.var.get() == As<VarNode>(body)) tuple = As<TupleNode>(binding.value);
        }
      }
    }
    std::vector<Expr> results = tuple == nullptr ? std::vector<Expr>{body} : tuple->fields;
    for (size_t i = 0; i < results.size(); ++i) {
      const VarNode* var = As<VarNode>(results[i]);
      while (var != nullptr && alias.contains(var)) var = alias[var];
      if (var != nullptr) output_of_.emplace(var, static_cast<int64_t>(i));
    }
  }

  void BindInt(const PrimVar& var, vm::RegisterId reg) {
    int_registers_[var] = reg;
    if (slot_vars_.size() <= reg.value) slot_vars_.resize(reg.value + 1);
    slot_vars_[reg.value] = var;
  }
  Result<DimCode> Dim(const PrimExpr& dim) { return codegen::LowerToDimCode(dim, slot_vars_); }
  Result<std::vector<DimCode>> Dims(const std::vector<PrimExpr>& dims) {
    std::vector<DimCode> codes;
    for (const PrimExpr& dim : dims) {
      INGOT_ASSIGN_OR_RETURN(DimCode code, Dim(dim));
      codes.push_back(std::move(code));
    }
    return codes;
  }
  // A register that holds the value of an integer expression.
  Result<vm::RegisterId> IntRegister(const PrimExpr& expr) {
    if (const PrimVarNode* var = As<PrimVarNode>(expr)) {
      if (auto it = int_registers_.find(Ref<PrimVarNode>(var)); it != int_registers_.end()) return it->second;
    }
    INGOT_ASSIGN_OR_RETURN(DimCode code, Dim(expr));
    const std::string key = code.ToString();
    if (auto it = dim_registers_.find(key); it != dim_registers_.end()) return it->second;
    const vm::RegisterId reg = builder_->AddRegister(vm::Type::Int());
    builder_->Dim(reg, std::move(code));
    dim_registers_.emplace(key, reg);
    return reg;
  }

  Result<vm::RegisterId> Register(const Expr& expr) {
    INGOT_ASSIGN_OR_RETURN(Value value, LowerValue(expr));
    return Materialise(value);
  }
  Result<vm::RegisterId> Materialise(const Value& value) {
    if (value.reg) return *value.reg;
    std::vector<vm::RegisterId> elements;
    std::vector<vm::Type> types;
    for (const Value& field : value.fields) {
      INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Materialise(field));
      if (builder_->type(reg).is_tensor() && builder_->type(reg).storage != vm::Storage::kOwned) reg = Copied(reg);
      elements.push_back(reg);
      types.push_back(builder_->type(reg));
    }
    const vm::RegisterId dst = builder_->AddRegister(vm::Type::Tuple(std::move(types)));
    builder_->Tuple(dst, std::move(elements));
    return dst;
  }
  vm::RegisterId Copied(vm::RegisterId src) {
    vm::Type type = builder_->type(src);
    type.storage = vm::Storage::kOwned;
    const vm::RegisterId dst = builder_->AddRegister(std::move(type));
    builder_->Copy(dst, src, 0);
    return dst;
  }

  // Operands of bindings and results: variables, constants and the small values.
  Result<Value> LowerValue(const Expr& expr) {
    switch (expr->kind) {
      case ExprKind::kVar:
        return values_.at(As<VarNode>(expr));
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
      case ExprKind::kPrimValue: {
        const PrimExpr& value = As<PrimValueNode>(expr)->value;
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
      case ExprKind::kTupleGetItem: {
        const TupleGetItemNode& item = *As<TupleGetItemNode>(expr);
        INGOT_ASSIGN_OR_RETURN(Value tuple, LowerValue(item.tuple));
        if (!tuple.reg) return tuple.fields.at(static_cast<size_t>(item.index));
        const vm::RegisterId dst =
            builder_->AddRegister(builder_->type(*tuple.reg).elements.at(static_cast<size_t>(item.index)));
        builder_->TupleGet(dst, *tuple.reg, item.index);
        return Value{dst, {}};
      }
      case ExprKind::kCall:
        return LowerCall(*As<CallNode>(expr));
      case ExprKind::kIf:
      case ExprKind::kOp:
      case ExprKind::kGlobalVar:
      case ExprKind::kExternFunc:
      case ExprKind::kSeqExpr:
      case ExprKind::kFunction:
      case ExprKind::kPrimFunc:
        break;
    }
    return Unsupported(expr->span, expr->kind == ExprKind::kIf ? "branches (R.if) are not lowered to bytecode yet"
                                                               : "functions as values are not lowered to bytecode yet");
  }

  Status LowerBinding(const Binding& binding) {
    // Names, not spans: an executable is the same whether it came from a file or from its text.
    if (binding.var->name != "_") builder_->Note(binding.var->name);
    if (const CallNode* call = As<CallNode>(binding.value)) {
      if (const op::OpRow* row = op::RowOf(Ref<CallNode>(call)); row == op::FindOp("builtin.alloc_tensor")) {
        return LowerAlloc(binding, *call);
      }
    }
    if (binding.is_match_cast()) return LowerMatchCast(binding);
    INGOT_ASSIGN_OR_RETURN(Value value, LowerValue(binding.value));
    values_[binding.var.get()] = std::move(value);
    return Status();
  }

  Status LowerAlloc(const Binding& binding, const CallNode& call) {
    const auto type = Downcast<TensorTypeNode>(call.type);
    INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, LowerType(call.type, symbols_, vm::Storage::kOwned, call.span));
    INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(*type->dims));
    const vm::RegisterId dst = builder_->AddRegister(std::move(vm_type));
    if (auto it = output_of_.find(binding.var.get()); it != output_of_.end()) {
      builder_->AllocOutput(dst, it->second, std::move(dims));
      made_as_output_[dst.value] = it->second;
    } else {
      builder_->Alloc(dst, std::move(dims));
    }
    values_[binding.var.get()] = {dst, {}};
    return Status();
  }

  // Checks the type; symbolic variables that it names for the first time get their values from the dims.
  Status LowerMatchCast(const Binding& binding) {
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId src, Register(binding.value));
    const vm::Storage storage = builder_->type(src).storage;
    INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(binding.match_cast, symbols_, storage, binding.span));
    const vm::RegisterId dst = builder_->AddRegister(std::move(type));
    builder_->Match(dst, src);
    if (auto it = entry_of_.find(src.value); it != entry_of_.end()) entry_of_[dst.value] = it->second;
    values_[binding.var.get()] = {dst, {}};
    const std::vector<PrimExpr>* dims = nullptr;
    const bool is_tensor = As<TensorTypeNode>(binding.match_cast) != nullptr;
    if (is_tensor && As<TensorTypeNode>(binding.match_cast)->dims)
      dims = &*As<TensorTypeNode>(binding.match_cast)->dims;
    if (const auto* shape = As<ShapeTypeNode>(binding.match_cast); shape != nullptr && shape->dims)
      dims = &*shape->dims;
    if (dims == nullptr) return Status();
    for (size_t i = 0; i < dims->size(); ++i) {
      PrimVar var = AsRef<PrimVarNode>((*dims)[i]);
      if (!var || int_registers_.contains(var)) continue;
      const vm::RegisterId reg = builder_->AddRegister(vm::Type::Int());
      if (is_tensor) {
        builder_->TensorDim(reg, dst, static_cast<int64_t>(i));
      } else {
        builder_->ShapeDim(reg, dst, static_cast<int64_t>(i));
      }
      BindInt(var, reg);
    }
    // Dims that are expressions of variables that were bound inside the function are compared here.
    for (size_t i = 0; i < dims->size(); ++i) {
      if (As<PrimVarNode>((*dims)[i]) != nullptr || TypeDim((*dims)[i], symbols_)) continue;
      INGOT_ASSIGN_OR_RETURN(DimCode expected, Dim((*dims)[i]));
      const vm::RegisterId actual = builder_->AddRegister(vm::Type::Int());
      if (is_tensor) {
        builder_->TensorDim(actual, dst, static_cast<int64_t>(i));
      } else {
        builder_->ShapeDim(actual, dst, static_cast<int64_t>(i));
      }
      const vm::RegisterId equal = builder_->AddRegister(vm::Type::Bool());
      builder_->Test(equal, DimCode::Binary(DimOp::kEq, DimCode::Slot(actual.value), expected));
      const vm::LabelId matches = builder_->NewLabel(), differs = builder_->NewLabel();
      builder_->Branch(equal, matches, differs);
      builder_->Bind(differs);
      builder_->Fail("match_cast of \"" + binding.var->name + "\": dimension " + std::to_string(i) +
                     " is not what its type says");
      builder_->Bind(matches);
    }
    return Status();
  }

  Result<Value> LowerCall(const CallNode& call) {
    if (const GlobalVarNode* callee = As<GlobalVarNode>(call.callee)) {
      if (const vm::KernelId* kernel = program_.FindKernel(callee->name))
        return LowerKernelCall(call, *kernel, callee->name);
      return LowerFunctionCall(call, callee->name);
    }
    if (const ExternFuncNode* external = As<ExternFuncNode>(call.callee)) return LowerBuiltinCall(call, external->name);
    const op::OpRow* row = op::RowOf(Ref<CallNode>(&call));
    if (row == op::FindOp("memory.alloc_storage")) return LowerStorage(call);
    if (row == op::FindOp("memory.alloc_tensor")) return LowerPlacedTensor(call);
    if (row != nullptr && row->is_view) return LowerView(call);
    return Unsupported(call.span,
                       std::string("a call of ") +
                           (row != nullptr ? "operator R." + std::string(row->name) : std::string("a value")) +
                           " cannot be lowered to bytecode");
  }

  Result<Value> LowerKernelCall(const CallNode& call, vm::KernelId kernel_id, const std::string& name) {
    const PrimFunc prim = program_.module().FindPrimFunc(name);
    std::vector<vm::RegisterId> buffers;
    std::unordered_map<PrimVar, Expr, RefHash, RefSame> scalars;
    PrimVarMap bound;
    size_t next = 0;
    for (const PrimFuncParam& param : prim->params) {
      if (next >= call.args.size()) return Unsupported(call.span, "too few arguments in a call of \"" + name + "\"");
      const Expr& arg = call.args[next++];
      if (!param.buffer) {
        scalars[param.var] = arg;
        continue;
      }
      INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Register(arg));
      buffers.push_back(reg);
      const TensorTypeNode* type = As<TensorTypeNode>(arg->type);
      if (type == nullptr || !type->dims || type->dims->size() != param.buffer->shape.size()) {
        return Unsupported(call.span,
                           "argument " + std::to_string(next - 1) + " of \"" + name + "\" has no known shape");
      }
      for (size_t i = 0; i < param.buffer->shape.size(); ++i) {
        if (PrimVar var = AsRef<PrimVarNode>(param.buffer->shape[i])) bound.try_emplace(var, (*type->dims)[i]);
      }
    }
    std::vector<vm::RegisterId> ints;
    for (const PrimVar& var : codegen::KernelIntArguments(prim)) {
      if (auto scalar = scalars.find(var); scalar != scalars.end()) {
        INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Register(scalar->second));
        ints.push_back(reg);
        continue;
      }
      auto it = bound.find(var);
      if (it == bound.end())
        return Unsupported(call.span, "\"" + var->name + "\" of \"" + name + "\" is bound by no argument");
      INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, IntRegister(it->second));
      ints.push_back(reg);
    }
    builder_->CallKernel(kernel_id, std::move(buffers), std::move(ints), 0);
    return Value{};
  }

  Result<Value> LowerBuiltinCall(const CallNode& call, std::string_view name) {
    const vm::BuiltinInfo* builtin = nullptr;
    if (name.starts_with(kBuiltinPrefix)) builtin = vm::FindBuiltin(name.substr(kBuiltinPrefix.size()));
    if (builtin == nullptr) {
      return Unsupported(call.span,
                         "a call of the external function \"" + std::string(name) + "\" cannot be lowered to bytecode");
    }
    std::vector<vm::RegisterId> args;
    for (const Expr& arg : call.args) {
      INGOT_ASSIGN_OR_RETURN(const vm::RegisterId reg, Register(arg));
      args.push_back(reg);
    }
    builder_->CallBuiltin({}, builtin->builtin, std::move(args), 0);
    return Value{};
  }

  Result<Value> LowerFunctionCall(const CallNode& call, const std::string& name) {
    const Function callee = program_.module().FindFunction(name);
    std::vector<vm::RegisterId> args;
    for (const Expr& arg : call.args) {
      INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Register(arg));
      args.push_back(reg);
    }
    std::vector<vm::RegisterId> results;
    Value value;
    for (const Type& type : ResultTypes(call.type)) {
      INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, LowerType(type, symbols_, vm::Storage::kOwned, call.span));
      results.push_back(builder_->AddRegister(std::move(vm_type)));
      value.fields.push_back({results.back(), {}});
    }
    builder_->CallFunction(std::move(results), program_.function_id(name), std::move(args));
    if (As<TupleTypeNode>(call.type) == nullptr) return Value(value.fields.at(0));
    return value;
  }

  Result<Value> LowerStorage(const CallNode& call) {
    INGOT_ASSIGN_OR_RETURN(DimCode size, Dim(As<ShapeExprNode>(call.args.at(0))->dims.at(0)));
    builder_->plan().arenas.push_back({0, std::move(size)});
    return Value{};
  }

  Result<Value> LowerPlacedTensor(const CallNode& call) {
    const auto type = Downcast<TensorTypeNode>(call.type);
    INGOT_ASSIGN_OR_RETURN(DimCode offset, Dim(As<PrimValueNode>(call.args.at(1))->value));
    INGOT_ASSIGN_OR_RETURN(DimCode size, Dim(AlignedSizeBytes(*type->dims, *type->dtype)));
    INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(*type->dims));
    INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, LowerType(call.type, symbols_, vm::Storage::kArena, call.span));
    const uint32_t now = builder_->next_instruction();
    const vm::PlanEntryId entry =
        builder_->AddPlanEntry({0, std::move(offset), std::move(size), now, now, std::nullopt});
    const vm::RegisterId dst = builder_->AddRegister(std::move(vm_type));
    builder_->PlanView(dst, entry, std::move(dims));
    entry_of_[dst.value] = entry.value;
    return Value{dst, {}};
  }

  Result<Value> LowerView(const CallNode& call) {
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId src, Register(call.args.at(0)));
    const auto type = Downcast<TensorTypeNode>(call.type);
    INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(*type->dims));
    INGOT_ASSIGN_OR_RETURN(vm::Type vm_type, LowerType(call.type, symbols_, builder_->type(src).storage, call.span));
    const vm::RegisterId dst = builder_->AddRegister(std::move(vm_type));
    builder_->View(dst, src, DimCode(0), std::move(dims));
    if (auto it = entry_of_.find(src.value); it != entry_of_.end()) entry_of_[dst.value] = it->second;
    return Value{dst, {}};
  }

  Status LowerReturn() {
    builder_->Note("return");
    INGOT_ASSIGN_OR_RETURN(Value value, LowerValue(function_->body->body));
    std::vector<Value> results{value};
    if (const TupleTypeNode* tuple = As<TupleTypeNode>(function_->body->body->type)) {
      if (value.reg) {  // a tuple that was passed in or came out of another one
        results.clear();
        for (size_t i = 0; i < tuple->fields.size(); ++i) {
          const vm::RegisterId dst = builder_->AddRegister(builder_->type(*value.reg).elements.at(i));
          builder_->TupleGet(dst, *value.reg, static_cast<int64_t>(i));
          results.push_back({dst, {}});
        }
      } else {
        results = value.fields;
      }
    }
    std::vector<vm::RegisterId> registers;
    for (size_t i = 0; i < results.size(); ++i) {
      INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, Materialise(results[i]));
      const vm::Type& type = builder_->type(reg);
      if (type.is_tensor()) {
        auto it = made_as_output_.find(reg.value);
        if (it == made_as_output_.end() || it->second != static_cast<int64_t>(i)) {
          INGOT_ASSIGN_OR_RETURN(reg, CopiedToOutput(reg, static_cast<int64_t>(i)));
        }
      }
      registers.push_back(reg);
    }
    builder_->Return(std::move(registers));
    return Status();
  }

  // A parameter, a constant, a view, or a tensor that is returned twice: its elements go into the result's own tensor.
  Result<vm::RegisterId> CopiedToOutput(vm::RegisterId src, int64_t index) {
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

  // Live ranges: from the view's instruction to the last one that mentions a register that shows the entry.
  void FinishPlan() {
    if (entry_of_.empty()) return;
    const std::vector<vm::Instruction>& code = builder_->code();
    for (uint32_t pc = 0; pc < code.size(); ++pc) {
      auto touch = [&](uint32_t reg) {
        if (auto it = entry_of_.find(reg); it != entry_of_.end()) builder_->plan().entries[it->second].last = pc;
      };
      const auto& specs = vm::InfoOf(code[pc].opcode).operands;
      for (size_t i = 0; i < specs.size(); ++i) {
        if (specs[i].kind == vm::OperandKind::kUse || specs[i].kind == vm::OperandKind::kDef) touch(code[pc].reg(i));
        if (specs[i].kind == vm::OperandKind::kUseList) {
          for (uint32_t reg : code[pc].registers(i)) touch(reg);
        }
      }
    }
  }

  ProgramLowering& program_;
  const Function& function_;
  const std::string& name_;
  Symbols symbols_;
  std::optional<vm::FunctionBuilder> builder_;
  std::unordered_map<const VarNode*, Value> values_;
  std::unordered_map<const VarNode*, int64_t> output_of_;  // an allocation -> the result that it is
  std::unordered_map<uint32_t, int64_t> made_as_output_;   // the same by register
  std::unordered_map<uint32_t, uint32_t> entry_of_;        // arena tensors: register -> plan entry
  std::unordered_map<uint32_t, vm::RegisterId> constant_registers_;
  std::unordered_map<PrimVar, vm::RegisterId, RefHash, RefSame> int_registers_;
  std::vector<PrimVar> slot_vars_;  // the same the other way round: null where a register holds no symbolic variable
  std::unordered_map<std::string, vm::RegisterId> dim_registers_;
};

// An exported PrimFunc: takes inputs and outputs, calls its kernel.
Result<vm::Function> LowerPrimEntry(ProgramLowering& program, const std::string& name, const PrimFunc& prim) {
  const vm::KernelId kernel_id = *program.FindKernel(name);
  const vm::Kernel& kernel = program.program().kernels[kernel_id.value];
  Symbols symbols;
  vm::Signature signature;
  for (const PrimVar& var : codegen::KernelIntArguments(prim)) {
    const bool is_scalar = std::any_of(prim->params.begin(), prim->params.end(),
                                       [&](const PrimFuncParam& p) { return !p.buffer && p.var.same_as(var); });
    if (!is_scalar) symbols.Add(var, prim->attrs);
  }
  signature.symbols = symbols.symbols();
  size_t next_buffer = 0;
  std::vector<size_t> buffers, scalars;  // positions of parameters
  for (size_t i = 0; i < prim->params.size(); ++i) {
    const PrimFuncParam& param = prim->params[i];
    if (!param.buffer) {
      scalars.push_back(i);
      const bool is_float = param.var->dtype.is_floating();
      signature.params.push_back({param.var->name, is_float ? vm::Type::Float() : vm::Type::Int()});
      continue;
    }
    buffers.push_back(i);
    const vm::Storage storage =
        kernel.params.at(next_buffer++).role == vm::ParamRole::kIn ? vm::Storage::kBorrowed : vm::Storage::kBorrowedMut;
    signature.params.push_back(
        {param.buffer->name, vm::Type::Tensor(param.buffer->dtype, TypeDims(param.buffer->shape, symbols), storage)});
  }
  vm::FunctionBuilder builder(name, std::move(signature));
  std::vector<vm::RegisterId> tensors, ints;
  for (size_t i : buffers) tensors.push_back(builder.param(i));
  for (size_t i = 0; i < symbols.symbols().size(); ++i) ints.push_back(builder.symbol(i));
  for (size_t i : scalars) ints.push_back(builder.param(i));
  builder.Note(name);
  builder.CallKernel(kernel_id, std::move(tensors), std::move(ints), 0);
  builder.Return({});
  return std::move(builder).Finish();
}

}  // namespace

Result<vm::Program> LowerToBytecode(const IRModule& module, std::vector<vm::Kernel> kernels) {
  ProgramLowering program(module, std::move(kernels));
  for (const IRModule::Entry& entry : module.functions()) {
    if (const Function function = AsRef<FunctionNode>(entry.function)) {
      FunctionLowering lowering(program, entry.var->name, function);
      INGOT_ASSIGN_OR_RETURN(vm::Function lowered, lowering.Run());
      program.program().functions.push_back(std::move(lowered));
    } else if (const PrimFunc prim = Downcast<PrimFuncNode>(entry.function); !prim->is_private) {
      INGOT_ASSIGN_OR_RETURN(vm::Function lowered, LowerPrimEntry(program, entry.var->name, prim));
      program.program().functions.push_back(std::move(lowered));
    }
  }
  return std::move(program.program());
}

}  // namespace ingot::lower
