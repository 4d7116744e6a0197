// States of the context: what a function's parameters and results keep between calls. A part of
// compiler/lower/program_lowering.h (which states there are) and of compiler/lower/function_lowering.h (how a function
// reads and writes them).
#include <algorithm>
#include <utility>

#include "compiler/lower/function_lowering.h"
#include "compiler/lower/vm_types.h"
#include "vm/program/builtins.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

const KeptState* StateOfParam(const std::vector<KeptState>& states, size_t param) {
  const auto found = std::ranges::find(states, param, [](const KeptState& state) { return state.of.param; });
  return found == states.end() ? nullptr : &*found;
}

const KeptState* StateOfResult(const std::vector<KeptState>& states, size_t result) {
  const auto found = std::ranges::find(states, result, [](const KeptState& state) { return state.of.result; });
  return found == states.end() ? nullptr : &*found;
}

Result<vm::StateId> ProgramLowering::AddState(const vm::State& state) {
  for (uint32_t i = 0; i < program_.states.size(); ++i) {
    if (program_.states[i].name != state.name) continue;
    if (program_.states[i] == state) return vm::StateId(i);
    return Unsupported({}, "the state \"" + state.name + "\" has another type in another function");
  }
  program_.states.push_back(state);
  return vm::StateId(static_cast<uint32_t>(program_.states.size() - 1));
}

Result<std::vector<KeptState>> ProgramLowering::FindStates(const Function& function) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<transform::StateParam> params, transform::StateParamsOf(function));
  std::vector<KeptState> states;
  for (const bool lengths : {true, false}) {
    for (const transform::StateParam& of : params) {
      const Var& param = function->params[of.param];
      if ((As<ShapeTypeNode>(param->type) != nullptr) != lengths) continue;
      const std::string name = transform::InputName(function, of.param);
      INGOT_ASSIGN_OR_RETURN(vm::State state, lengths ? LengthState(param, name) : TensorState(param, name));
      if (of.growth) {
        const KeptState* length = StateOfParam(states, of.growth->length);
        if (length == nullptr) return Unsupported(param->span, "the cache \"" + name + "\" has no length");
        state.growth = vm::StateGrowth{static_cast<uint8_t>(of.growth->axis), length->id};
      }
      INGOT_ASSIGN_OR_RETURN(const vm::StateId id, AddState(state));
      states.push_back({of, id});
    }
  }
  return states;
}

Result<vm::State> ProgramLowering::LengthState(const Var& param, const std::string& name) const {
  const auto* shape = As<ShapeTypeNode>(param->type);
  if (!shape->dims || shape->rank != 1 || !AsRef<PrimVarNode>((*shape->dims)[0])) {
    return Unsupported(param->span, "the length \"" + name + "\" is no symbolic dimension");
  }
  vm::State state;
  state.name = name;
  state.dtype = DataType::Int(64);
  return state;
}

Result<vm::State> ProgramLowering::TensorState(const Var& param, const std::string& name) const {
  const auto* tensor = As<TensorTypeNode>(param->type);
  if (tensor == nullptr || !tensor->dims || !tensor->dtype) {
    return Unsupported(param->span, "the state \"" + name + "\" is no tensor of known shape");
  }
  vm::State state;
  state.name = name;
  state.dtype = *tensor->dtype;
  for (const PrimExpr& dim : *tensor->dims) {
    if (!AsConstInt(dim)) {
      return Unsupported(param->span, "the state \"" + name + "\" has a dimension that is no constant");
    }
    state.dims.push_back(*AsConstInt(dim));
  }
  return state;
}

Status FunctionLowering::BindParams() {
  const size_t num_inputs = NumInputs(*function_), captured = program_.NumCaptured(name_);
  if (!states_.empty() && (captured > 0 || !tail_calls_.calls.empty())) return RefuseStates(function_->span, name_);
  for (size_t i = 0, next = 0; i < num_inputs; ++i) {
    const Var& param = function_->params[i];
    if (const KeptState* state = StateOfParam(states_, i)) {
      INGOT_RETURN_IF_ERROR(BindState(param, *state));
      continue;
    }
    // Captured parameters are the first ones in bytecode and the last ones in the graph.
    values_[param.get()] = {builder_->param((next++ + captured) % num_inputs), {}};
  }
  return Status();
}

Status FunctionLowering::RefuseStates(const Span& span, const std::string& name) const {
  if (program_.states(name).empty()) return Status();
  return Unsupported(span, "a call of \"" + name + "\", which has states and is an entry function alone");
}

Status FunctionLowering::BindState(const Var& param, const KeptState& state) {
  const vm::State& row = program_.program().states[state.id.value];
  if (const auto* shape = As<ShapeTypeNode>(param->type)) {
    INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, Dims(*shape->dims));
    const vm::RegisterId reg = builder_->AddRegister(vm::Type::Shape(TypeDims(*shape->dims, symbols_)));
    builder_->Shape(reg, std::move(dims));
    values_[param.get()] = {reg, {}};
    return Status();
  }
  const std::vector<vm::Dim> dims(row.dims.begin(), row.dims.end());
  const vm::RegisterId reg = builder_->AddRegister(vm::Type::Tensor(row.dtype, dims, vm::Storage::kBorrowedMut));
  builder_->State(reg, state.id);
  values_[param.get()] = {reg, {}};
  return Status();
}

// Writes new values to the context after everything else, lengths last: a call that fails changes no state, since the
// elements that it appended lie behind the old length. Results are in the function's order.
Status FunctionLowering::StoreStates(const std::vector<Value>& results) {
  struct Store {
    vm::RegisterId to, from;
  };
  std::vector<Store> stores;
  for (const KeptState& state : states_) {
    const vm::State& row = program_.program().states[state.id.value];
    const Var& param = function_->params[state.of.param];
    if (As<ShapeTypeNode>(param->type) != nullptr) continue;
    INGOT_ASSIGN_OR_RETURN(vm::RegisterId from, Materialise(results[state.of.result]));
    const vm::RegisterId to = *values_.at(param.get()).reg;
    if (from == to) continue;  // the call appended to it, or left it alone
    // The value lies in the memory of another state, which may be written before this one.
    if (builder_->type(from).storage == vm::Storage::kBorrowedMut) from = Copied(from);
    if (builder_->type(from).dtype != row.dtype) return Unsupported(param->span, "a state changes its dtype");
    stores.push_back({to, from});
  }
  for (const Store& store : stores) builder_->CopyInto(store.to, store.from, 0);
  for (const KeptState& state : states_) {
    const Var& param = function_->params[state.of.param];
    if (As<ShapeTypeNode>(param->type) == nullptr) continue;
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId shape, Materialise(results[state.of.result]));
    const vm::RegisterId value = builder_->AddRegister(vm::Type::Int());
    builder_->ShapeDim(value, shape, 0);
    const vm::RegisterId length =
        builder_->AddRegister(vm::Type::Tensor(DataType::Int(64), {}, vm::Storage::kBorrowedMut));
    builder_->State(length, state.id);
    builder_->CallBuiltin({}, vm::Builtin::kStoreInt, {length, value}, 0);
  }
  return Status();
}

}  // namespace ingot::lower
