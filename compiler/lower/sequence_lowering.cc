// Sequences: tuples that builtins of the VM make, take apart and change by copy. A part of
// compiler/lower/function_lowering.h.
#include "compiler/lower/function_lowering.h"
#include "compiler/lower/vm_types.h"

namespace ingot::lower {

using namespace ir;  // NOLINT: this file is about IR nodes

Result<FunctionLowering::Value> FunctionLowering::LowerSequenceConstruct(const CallNode& call) {
  Value elements;
  for (const Expr& arg : call.args) {
    INGOT_ASSIGN_OR_RETURN(const vm::RegisterId element, Register(arg));
    elements.fields.push_back({element, {}});
  }
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId tuple, Materialise(elements));
  return Value{tuple, {}};
}

Result<FunctionLowering::Value> FunctionLowering::Splice(const CallNode& call, size_t position, int64_t count,
                                                         const Value& replacement) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId place, Register(call.args.at(position)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId replaced, IntRegister(Int64(count)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId elements, Materialise(replacement));
  // The sequence is moved into a register that the result takes. If the sequence's own register is not read again, it
  // is released, and the VM changes the sequence in place.
  const vm::RegisterId dst = builder_->AddRegister(vm::Type::Object("any"));
  builder_->Move(dst, sequence);
  builder_->CallBuiltin({dst}, vm::Builtin::kSequenceSplice, {dst, place, replaced, elements}, 0);
  return Value{dst, {}};
}

Result<FunctionLowering::Value> FunctionLowering::LowerSequenceInsert(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId element, Register(call.args.at(1)));
  return Splice(call, 2, 0, Value{std::nullopt, {Value{element, {}}}});
}

Result<FunctionLowering::Value> FunctionLowering::LowerSequenceErase(const CallNode& call) {
  return Splice(call, 1, 1, Value{});
}

Result<FunctionLowering::Value> FunctionLowering::LowerSequenceAt(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId position, Register(call.args.at(1)));
  INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(call.type, symbols_, vm::Storage::kOwned, call.span));
  const vm::RegisterId dst = builder_->AddRegister(std::move(type));
  builder_->CallBuiltin({dst}, vm::Builtin::kSequenceAt, {sequence, position}, 0);
  return Value{dst, {}};
}

Result<FunctionLowering::Value> FunctionLowering::LowerSequenceLength(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, Register(call.args.at(0)));
  const vm::RegisterId length = builder_->AddRegister(vm::Type::Int());
  builder_->CallBuiltin({length}, vm::Builtin::kSequenceLength, {sequence}, 0);
  const vm::RegisterId shape = builder_->AddRegister(vm::Type::Shape({std::nullopt}));
  builder_->Shape(shape, {DimCode::Slot(length.value)});
  return Value{shape, {}};
}

Result<FunctionLowering::Value> FunctionLowering::LowerSequenceConcatShape(const CallNode& call) {
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId sequence, Register(call.args.at(0)));
  INGOT_ASSIGN_OR_RETURN(const vm::RegisterId axis, IntRegister(Int64(call.attrs.GetInt("axis"))));
  const vm::RegisterId new_axis = builder_->AddRegister(vm::Type::Bool());
  builder_->ConstBool(new_axis, call.attrs.GetBool("new_axis"));
  INGOT_ASSIGN_OR_RETURN(vm::Type type, LowerType(call.type, symbols_, vm::Storage::kOwned, call.span));
  const vm::RegisterId dst = builder_->AddRegister(std::move(type));
  builder_->CallBuiltin({dst}, vm::Builtin::kSequenceConcatDims, {sequence, axis, new_axis}, 0);
  return Value{dst, {}};
}

}  // namespace ingot::lower
