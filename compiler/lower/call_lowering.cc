// What a call becomes depends on its callee: Lower and LowerOpCall choose, and the functions below them emit.
#include "compiler/lower/call_lowering.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/ir/visitor.h"
#include "compiler/lower/vm_types.h"
#include "compiler/memory/destination_passing.h"
#include "compiler/op/names.h"
#include "vm/verify/type_rules.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

namespace {

std::vector<vm::Type> TypesOf(const std::vector<vm::NamedType>& named) {
  std::vector<vm::Type> types;
  for (const vm::NamedType& type : named) types.push_back(type.type);
  return types;
}

}  // namespace

Result<Value> CallLowering::Lower(const CallNode& call) {
  if (const GlobalVarNode* callee = As<GlobalVarNode>(call.callee)) {
    if (const vm::KernelId* kernel = program_.FindKernel(callee->name)) {
      return LowerKernelCall(call, *kernel, callee->name);
    }
    return LowerFunctionCall(call, callee->name);
  }
  if (const ExternFuncNode* external = As<ExternFuncNode>(call.callee)) {
    return external->name.starts_with(memory::kBuiltinPrefix) ? LowerBuiltinCall(call, external->name)
                                                              : LowerExternalCall(call, external->name);
  }
  const op::OpRow* row = op::RowOf(Ref<CallNode>(&call));
  return row != nullptr ? LowerOpCall(call, *row) : LowerClosureCall(call, call.callee, call.args);
}

Result<Value> CallLowering::LowerOpCall(const CallNode& call, const op::OpRow& row) {
  using Lowering = Result<Value> (*)(CallLowering & self, const CallNode& call);
  // The operators that bytecode has, besides views; calls of all others must be gone by now.
  static constexpr std::pair<std::string_view, Lowering> kLowerings[] = {
      {op::names::kAssert, [](CallLowering& self, const CallNode& call) { return self.LowerAssert(call); }},
      {op::names::kInvokeClosure,
       [](CallLowering& self, const CallNode& call) { return self.LowerInvokeClosure(call); }},
      {op::names::kInvokePureClosure,
       [](CallLowering& self, const CallNode& call) { return self.LowerInvokeClosure(call); }},
      {op::names::kMemoryBitcast,
       [](CallLowering& self, const CallNode& call) { return self.memory_.LowerView(call); }},
      {op::names::kMakeClosure, [](CallLowering& self, const CallNode& call) { return self.LowerMakeClosure(call); }},
      {op::names::kAllocStorage,
       [](CallLowering& self, const CallNode& call) { return self.memory_.LowerStorage(call); }},
      {op::names::kAllocTensorInStorage,
       [](CallLowering& self, const CallNode& call) { return self.memory_.LowerPlacedTensor(call); }},
      {op::names::kWriteRow, [](CallLowering& self, const CallNode& call) { return self.memory_.LowerRowWrite(call); }},
      {op::names::kPrint, [](CallLowering& self, const CallNode& call) { return self.LowerPrint(call); }},
      {op::names::kSequenceAt, [](CallLowering& self, const CallNode& call) { return self.sequences_.LowerAt(call); }},
      {op::names::kSequenceConcatShape,
       [](CallLowering& self, const CallNode& call) { return self.sequences_.LowerConcatShape(call); }},
      {op::names::kSequenceConstruct,
       [](CallLowering& self, const CallNode& call) { return self.sequences_.LowerConstruct(call); }},
      {op::names::kSequenceErase,
       [](CallLowering& self, const CallNode& call) { return self.sequences_.LowerErase(call); }},
      {op::names::kSequenceInsert,
       [](CallLowering& self, const CallNode& call) { return self.sequences_.LowerInsert(call); }},
      {op::names::kSequenceLength,
       [](CallLowering& self, const CallNode& call) { return self.sequences_.LowerLength(call); }},
      {op::names::kShapeOf, [](CallLowering& self, const CallNode& call) { return self.LowerShapeOf(call); }},
      {op::names::kTensorToShape,
       [](CallLowering& self, const CallNode& call) { return self.LowerTensorToShape(call); }},
  };
  if (row.is_view) return memory_.LowerView(call);
  for (const auto& [name, lower] : kLowerings) {
    if (name == row.name) return lower(*this, call);
  }
  return Unsupported(call.span, "a call of operator R." + std::string(row.name) + " cannot be lowered to bytecode");
}

// ---- Kernels and builtins

Result<Value> CallLowering::LowerKernelCall(const CallNode& call, vm::KernelId kernel_id, const std::string& name) {
  const PrimFunc prim = program_.module().FindPrimFunc(name);
  const vm::Kernel& kernel = program_.program().kernels[kernel_id.value];
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
    const std::string argument = "argument " + std::to_string(next - 1) + " of \"" + name + "\"";
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, operands_.Register(arg));
    const bool is_written = kernel.params.at(buffers.size()).role != vm::ParamRole::kIn;
    if (is_written && !vm::IsWritable(builder_.type(reg).storage)) {
      return Unsupported(call.span, argument + " is written, and is not this function's own");
    }
    buffers.push_back(reg);
    const TensorTypeNode* type = As<TensorTypeNode>(arg->type);
    if (type == nullptr || !type->dims || type->dims->size() != param.buffer->shape.size()) {
      return Unsupported(call.span, argument + " has no known shape");
    }
    for (size_t i = 0; i < param.buffer->shape.size(); ++i) {
      if (PrimVar var = AsRef<PrimVarNode>(param.buffer->shape[i])) bound.try_emplace(var, (*type->dims)[i]);
    }
  }
  std::vector<vm::RegisterId> ints;
  for (const PrimVar& var : codegen::KernelIntArguments(prim)) {
    if (auto scalar = scalars.find(var); scalar != scalars.end()) {
      INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, operands_.Register(scalar->second));
      ints.push_back(reg);
      continue;
    }
    auto it = bound.find(var);
    if (it == bound.end())
      return Unsupported(call.span, "\"" + var->name + "\" of \"" + name + "\" is bound by no argument");
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId reg, scope_.IntRegister(it->second));
    ints.push_back(reg);
  }
  builder_.CallKernel(kernel_id, std::move(buffers), std::move(ints), 0);
  return Value{};
}

Result<Value> CallLowering::LowerBuiltinCall(const CallNode& call, std::string_view name) {
  const vm::BuiltinInfo* builtin = vm::FindBuiltin(name.substr(memory::kBuiltinPrefix.size()));
  if (builtin == nullptr) return Unsupported(call.span, "there is no builtin \"" + std::string(name) + "\"");
  INGOT_ASSIGN_OR_RETURN(std::vector<vm::RegisterId> args, operands_.Registers(call.args));
  builder_.CallBuiltin({}, builtin->builtin, std::move(args), 0);
  return Value{};
}

// The builtin takes the first arguments, then the format, then the values that the format's placeholders print.
Result<Value> CallLowering::LowerReport(const CallNode& call, vm::Builtin builtin, std::vector<vm::RegisterId> args,
                                        size_t first_value) {
  args.push_back(builder_.AddRegister(vm::Type::String()));
  builder_.ConstString(args.back(), call.attrs.GetString("format"));
  for (size_t i = first_value; i < call.args.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId value, operands_.Register(call.args[i]));
    args.push_back(value);
  }
  builder_.CallBuiltin({}, builtin, std::move(args), 0);
  return Value{};
}

Result<Value> CallLowering::LowerPrint(const CallNode& call) { return LowerReport(call, vm::Builtin::kPrint, {}, 0); }

Result<Value> CallLowering::LowerAssert(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId condition, operands_.Condition(call.args.at(0)));
  return LowerReport(call, vm::Builtin::kAssert, {condition}, 1);
}

// ---- Shapes

Result<Value> CallLowering::LowerTensorToShape(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId tensor, operands_.Register(call.args.at(0)));
  std::vector<DimCode> dims;
  for (int i = 0; i < As<ShapeTypeNode>(call.type)->rank; ++i) {
    const vm::RegisterId element = builder_.AddRegister(vm::Type::Int());
    builder_.LoadInt(element, tensor, DimCode(i));
    dims.push_back(DimCode::Slot(element.value));
  }
  const vm::RegisterId shape = builder_.AddRegister(vm::Type::Shape(std::vector<vm::Dim>(dims.size())));
  builder_.Shape(shape, std::move(dims));
  return Value{shape, {}};
}

Result<Value> CallLowering::LowerShapeOf(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId tensor, operands_.Register(call.args.at(0)));
  const vm::Type type = builder_.type(tensor);
  if (!type.is_tensor()) return Unsupported(call.span, "the shape of what is not known to be a tensor");
  std::vector<DimCode> dims;
  for (int i = 0; i < type.rank(); ++i) {
    const vm::Dim& dim = type.dims[static_cast<size_t>(i)];
    dims.push_back(dim ? *dim : DimCode::Slot(ExtentOf(tensor, i, builder_).value));
  }
  const vm::RegisterId shape = builder_.AddRegister(vm::Type::Shape(type.dims));
  builder_.Shape(shape, std::move(dims));
  return Value{shape, {}};
}

// ---- Functions and closures

Result<CallLowering::CallResults> CallLowering::MakeResults(const CallNode& call,
                                                            const std::vector<vm::Type>& produced) {
  const std::vector<Type> types = ResultTypes(call.type);
  CallResults results;
  for (size_t i = 0; i < produced.size(); ++i) {
    results.wanted.push_back(produced[i]);
    if (types.size() == produced.size()) {
      INGOT_ASSIGN_OR_RETURN(vm::Type wanted, scope_.RegisterType(types[i], vm::Storage::kOwned, call.span));
      if (!vm::IsAnyObject(wanted)) results.wanted.back() = std::move(wanted);
    }
    const bool takes = vm::IsAssignable(results.wanted.back(), produced[i]);
    results.registers.push_back(builder_.AddRegister(vm::Type(takes ? results.wanted.back() : produced[i])));
  }
  return results;
}

Result<Value> CallLowering::ValueOf(const CallNode& call, const CallResults& results) {
  Value value;
  for (size_t i = 0; i < results.registers.size(); ++i) {
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId reg,
                           matching_.Narrowed(results.registers[i], results.wanted[i], call.span));
    value.fields.push_back({reg, {}});
  }
  if (As<TupleTypeNode>(call.type) == nullptr && value.fields.size() == 1) return Value(value.fields[0]);
  return value;
}

Status CallLowering::FitArguments(const CallNode& call, const std::string& callee, const std::vector<vm::Type>& params,
                                  std::vector<vm::RegisterId>& args) {
  if (params.size() != args.size()) {
    return Unsupported(call.span, callee + " takes " + std::to_string(params.size()) + " arguments, got " +
                                      std::to_string(args.size()));
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (vm::IsPassable(params[i], builder_.type(args[i]))) continue;
    if (vm::IsAnyObject(params[i])) {
      INGOT_ASSIGN_OR_RETURN(args[i], matching_.Narrowed(args[i], params[i], call.span));
      continue;
    }
    return Unsupported(call.span, "argument " + std::to_string(i) + " of " + callee + ": expected " +
                                      params[i].ToString() + ", got " + builder_.type(args[i]).ToString());
  }
  return Status();
}

Result<Value> CallLowering::LowerFunctionCall(const CallNode& call, const std::string& name) {
  const vm::FunctionId* callee = program_.FindFunction(name);
  if (callee == nullptr) return Unsupported(call.span, "there is no function \"" + name + "\" to call");
  INGOT_RETURN_IF_ERROR(program_.RefuseStates(call.span, name));
  const vm::Signature& signature = program_.signature(*callee);
  INGOT_ASSIGN_OR_RETURN(std::vector<vm::RegisterId> args, operands_.Registers(call.args));
  std::rotate(args.begin(), args.end() - static_cast<std::ptrdiff_t>(program_.NumCaptured(name)), args.end());
  INGOT_RETURN_IF_ERROR(FitArguments(call, "\"" + name + "\"", TypesOf(signature.params), args));
  std::vector<const vm::Type*> types;
  for (vm::RegisterId arg : args) types.push_back(&builder_.type(arg));
  const std::vector<vm::Dim> bound = vm::BindSymbols(signature, types);
  std::vector<vm::Type> produced;
  for (const vm::NamedType& result : signature.results) produced.push_back(vm::SubstituteSymbols(result.type, bound));
  INGOT_ASSIGN_OR_RETURN(CallResults results, MakeResults(call, produced));
  builder_.CallFunction(results.registers, *callee, std::move(args));
  return ValueOf(call, results);
}

Result<Value> CallLowering::LowerClosureCall(const CallNode& call, const Expr& callee,
                                             const std::vector<Expr>& arguments) {
  INGOT_ASSIGN_OR_RETURN(vm::RegisterId closure, operands_.Register(callee));
  INGOT_ASSIGN_OR_RETURN(std::vector<vm::RegisterId> args, operands_.Registers(arguments));
  if (vm::IsAnyObject(builder_.type(closure))) {
    // The types of the closure are compared with the types that the call needs.
    std::vector<vm::Type> params, results;
    for (const Expr& argument : arguments) {
      INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(argument->type, {}, vm::Storage::kBorrowed, call.span));
      params.push_back(std::move(type));
    }
    for (const Type& type : ResultTypes(call.type)) {
      INGOT_ASSIGN_OR_RETURN(vm::Type result, LowerType(type, {}, vm::Storage::kOwned, call.span));
      results.push_back(std::move(result));
    }
    INGOT_ASSIGN_OR_RETURN(
        closure, matching_.Narrowed(closure, vm::Type::Closure(std::move(params), std::move(results)), call.span));
  }
  const vm::Type type = builder_.type(closure);
  if (type.kind != vm::ValueKind::kClosure) return Unsupported(call.span, "a call of what is no function");
  INGOT_RETURN_IF_ERROR(FitArguments(call, "the function", type.elements, args));
  INGOT_ASSIGN_OR_RETURN(CallResults results, MakeResults(call, type.results));
  builder_.CallClosure(results.registers, closure, std::move(args));
  return ValueOf(call, results);
}

Result<Value> CallLowering::LowerInvokeClosure(const CallNode& call) {
  const TupleNode* args = As<TupleNode>(call.args.at(1));
  if (args == nullptr) return Unsupported(call.span, "a closure's arguments that are no list");
  return LowerClosureCall(call, call.args[0], args->fields);
}

Result<Value> CallLowering::LowerMakeClosure(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const Value captured, operands_.Lower(call.args.at(1)));
  std::vector<vm::RegisterId> captures;
  for (const Value& field : FieldsOf(captured, builder_)) {
    const vm::RegisterId reg = Materialise(field, builder_);
    captures.push_back(Owned(reg, builder_));
  }
  return operands_.MakeClosure(As<GlobalVarNode>(call.args[0])->name, std::move(captures), call.span);
}

// ---- Functions of the embedding program

Result<Value> CallLowering::LowerExternalCall(const CallNode& call, const std::string& name) {
  const vm::ExternalId id = *program_.FindExternal(name);
  const vm::Signature signature = program_.program().externals[id.value].signature;
  INGOT_ASSIGN_OR_RETURN(std::vector<vm::RegisterId> args, operands_.Registers(call.args));
  INGOT_RETURN_IF_ERROR(FitArguments(call, "\"" + name + "\"", TypesOf(signature.params), args));
  INGOT_ASSIGN_OR_RETURN(CallResults results, MakeResults(call, TypesOf(signature.results)));
  builder_.CallExternal(results.registers, id, std::move(args));
  return ValueOf(call, results);
}

}  // namespace ingot::lower
