// One function per operator; insertion and erasure are both a splice.
#include "compiler/lower/sequence_lowering.h"

#include <utility>

#include "compiler/lower/vm_types.h"
#include "vm/program/builtins.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

Result<Value> SequenceLowering::LowerConstruct(const CallNode& call) {
  Value elements;
  for (const Expr& arg : call.args) {
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId element, operands_.Register(arg));
    elements.fields.push_back({element, {}});
  }
  const vm::RegisterId tuple = Materialise(elements, builder_);
  return Value{tuple, {}};
}

Result<Value> SequenceLowering::Splice(const CallNode& call, size_t position, int64_t count, const Value& replacement) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, operands_.Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId place, operands_.Register(call.args.at(position)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId replaced, scope_.IntRegister(Int64(count)));
  const vm::RegisterId elements = Materialise(replacement, builder_);
  // The sequence is moved into a register that the result takes. If the sequence's own register is not read again, it
  // is released, and the VM changes the sequence in place.
  const vm::RegisterId dst = builder_.AddRegister(vm::Type::Object("any"));
  builder_.Move(dst, sequence);
  builder_.CallBuiltin({dst}, vm::Builtin::kSequenceSplice, {dst, place, replaced, elements}, 0);
  return Value{dst, {}};
}

Result<Value> SequenceLowering::LowerInsert(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId element, operands_.Register(call.args.at(1)));
  return Splice(call, 2, 0, Value{std::nullopt, {Value{element, {}}}});
}

Result<Value> SequenceLowering::LowerErase(const CallNode& call) { return Splice(call, 1, 1, Value{}); }

Result<Value> SequenceLowering::LowerAt(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, operands_.Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId position, operands_.Register(call.args.at(1)));
  INGOT_ASSIGN_OR_RETURN(vm::Type type, scope_.RegisterType(call.type, vm::Storage::kOwned, call.span));
  const vm::RegisterId dst = builder_.AddRegister(std::move(type));
  builder_.CallBuiltin({dst}, vm::Builtin::kSequenceAt, {sequence, position}, 0);
  return Value{dst, {}};
}

Result<Value> SequenceLowering::LowerLength(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, operands_.Register(call.args.at(0)));
  const vm::RegisterId length = builder_.AddRegister(vm::Type::Int());
  builder_.CallBuiltin({length}, vm::Builtin::kSequenceLength, {sequence}, 0);
  const vm::RegisterId shape = builder_.AddRegister(vm::Type::Shape({std::nullopt}));
  builder_.Shape(shape, {DimCode::Slot(length.value)});
  return Value{shape, {}};
}

Result<Value> SequenceLowering::LowerConcatShape(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, operands_.Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId axis, scope_.IntRegister(Int64(call.attrs.GetInt("axis"))));
  const vm::RegisterId new_axis = builder_.AddRegister(vm::Type::Bool());
  builder_.ConstBool(new_axis, call.attrs.GetBool("new_axis"));
  INGOT_ASSIGN_OR_RETURN(vm::Type type, scope_.RegisterType(call.type, vm::Storage::kOwned, call.span));
  const vm::RegisterId dst = builder_.AddRegister(std::move(type));
  builder_.CallBuiltin({dst}, vm::Builtin::kSequenceConcatDims, {sequence, axis, new_axis}, 0);
  return Value{dst, {}};
}

}  // namespace ingot::lower
