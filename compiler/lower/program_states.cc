// Which states of the context a function keeps: the part of compiler/lower/program_lowering.h that declares them.
#include "compiler/lower/program_lowering.h"

#include <algorithm>
#include <utility>

#include "compiler/lower/vm_types.h"

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

Status ProgramLowering::RefuseStates(const Span& span, const std::string& name) const {
  if (states(name).empty()) return Status();
  return Unsupported(span, "a call of \"" + name + "\", which has states and is an entry function alone");
}

}  // namespace ingot::lower
