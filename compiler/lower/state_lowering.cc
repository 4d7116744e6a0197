// Reading states is one instruction per parameter; writing them comes last in the function.
#include "compiler/lower/state_lowering.h"

#include <utility>

#include "compiler/lower/vm_types.h"
#include "vm/program/builtins.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

Result<Value> StateLowering::Bind(const Var& param, const KeptState& state) {
  const vm::State& row = program_.program().states[state.id.value];
  if (const auto* shape = As<ShapeTypeNode>(param->type)) {
    INGOT_ASSIGN_OR_RETURN(std::vector<DimCode> dims, scope_.Dims(*shape->dims));
    const vm::RegisterId reg = builder_.AddRegister(vm::Type::Shape(scope_.RegisterDims(*shape->dims)));
    builder_.Shape(reg, std::move(dims));
    return Value{reg, {}};
  }
  const std::vector<vm::Dim> dims(row.dims.begin(), row.dims.end());
  const vm::RegisterId reg = builder_.AddRegister(vm::Type::Tensor(row.dtype, dims, vm::Storage::kBorrowedMut));
  builder_.State(reg, state.id);
  tensors_.emplace(param.get(), reg);
  return Value{reg, {}};
}

// Writes new values to the context after everything else, lengths last: a call that fails changes no state, since the
// elements that it appended lie behind the old length. Results are in the function's order.
Status StateLowering::Store(const std::vector<Value>& results) {
  struct Copy {
    vm::RegisterId to, from;
  };
  std::vector<Copy> copies;
  for (const KeptState& state : states_) {
    const vm::State& row = program_.program().states[state.id.value];
    const Var& param = function_.params[state.of.param];
    if (As<ShapeTypeNode>(param->type) != nullptr) continue;
    vm::RegisterId from = Materialise(results[state.of.result], builder_);
    const vm::RegisterId to = tensors_.at(param.get());
    if (from == to) continue;  // the call appended to it, or left it alone
    // The value lies in the memory of another state, which may be written before this one.
    if (builder_.type(from).storage == vm::Storage::kBorrowedMut) from = Copied(from, builder_);
    if (builder_.type(from).dtype != row.dtype) return Unsupported(param->span, "a state changes its dtype");
    copies.push_back({to, from});
  }
  for (const Copy& copy : copies) builder_.CopyInto(copy.to, copy.from, 0);
  for (const KeptState& state : states_) {
    const Var& param = function_.params[state.of.param];
    if (As<ShapeTypeNode>(param->type) == nullptr) continue;
    const vm::RegisterId shape = Materialise(results[state.of.result], builder_);
    const vm::RegisterId value = builder_.AddRegister(vm::Type::Int());
    builder_.ShapeDim(value, shape, 0);
    const vm::RegisterId length =
        builder_.AddRegister(vm::Type::Tensor(DataType::Int(64), {}, vm::Storage::kBorrowedMut));
    builder_.State(length, state.id);
    builder_.CallBuiltin({}, vm::Builtin::kStoreInt, {length, value}, 0);
  }
  return Status();
}

}  // namespace ingot::lower
