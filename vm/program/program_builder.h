// FunctionBuilder: how the compiler's lowering, and tests, write bytecode (the assembler reads text straight into a
// Program). It has one method per opcode, generated from vm/program/opcodes.def with the operands as parameters in
// table order; labels may be used before they are bound. It proves nothing about what it is given: the verifier does.
// Streams are 0.
//
//   FunctionBuilder f("main", signature);         // symbols and parameters have registers already
//   RegisterId y = f.AddRegister(Type::Tensor(DataType::Float(32), {DimCode::Slot(0), DimCode(10)}));
//   f.Note("softmax");                            // debug map: the following code comes from here
//   f.AllocOutput(y, 0, {DimCode::Slot(0), DimCode(10)});
//   f.CallKernel(kernel, {f.param(0), y}, {f.symbol(0)}, 0);
//   f.Return({y});
//   program.functions.push_back(std::move(f).Finish());
#pragma once

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "vm/program/builtins.h"
#include "vm/program/foreach.h"
#include "vm/program/ids.h"
#include "vm/program/program.h"

namespace ingot::vm {

class FunctionBuilder {
 public:
  FunctionBuilder(std::string name, Signature signature, bool exported = true);

  RegisterId symbol(size_t i) const { return RegisterId(static_cast<uint32_t>(i)); }
  RegisterId param(size_t i) const { return RegisterId(static_cast<uint32_t>(function_.signature.symbols.size() + i)); }
  RegisterId AddRegister(Type type);
  const Type& type(RegisterId id) const { return function_.registers[id.value]; }

  LabelId NewLabel();
  // The label is the next instruction. A label is bound once.
  void Bind(LabelId label);
  // The index of the next instruction: what memory plans' live ranges are made of.
  uint32_t next_instruction() const { return static_cast<uint32_t>(function_.code.size()); }

  const std::vector<Instruction>& code() const { return function_.code; }  // so far; labels are not patched yet
  MemoryPlan& plan() { return function_.plan; }
  PlanEntryId AddPlanEntry(PlanEntry entry);
  // Code from here on comes from this source operation; equal notes in a row are merged.
  void Note(std::string text);

  // The C++ type of a builder method's parameter per operand kind.
  struct Param {
    using Def = RegisterId;
    using Use = RegisterId;
    using DefList = std::vector<RegisterId>;
    using UseList = std::vector<RegisterId>;
    using Int = int64_t;
    using Float = double;
    using Bool = bool;
    using Text = std::string;
    using DType = DataType;
    using Dim = DimCode;
    using DimList = std::vector<DimCode>;
    using Label = LabelId;
    using Kernel = KernelId;
    using Builtin = vm::Builtin;
    using Function = FunctionId;
    using External = ExternalId;
    using Constant = ConstantId;
    using State = StateId;
    using PlanEntry = PlanEntryId;
    using Stream = int64_t;
  };
#define INGOT_PARAM(kind, accepts, name) Param::kind name
#define INGOT_ARGUMENT(kind, accepts, name) Encode(std::move(name))
#define INGOT_OPCODE(number, Name, text, flow, result, calls, uses, semantics, ...)    \
  void Name(INGOT_FOR_EACH(INGOT_PARAM, __VA_ARGS__)) {                                \
    Emit(Instruction{Opcode::k##Name, {INGOT_FOR_EACH(INGOT_ARGUMENT, __VA_ARGS__)}}); \
  }
#include "vm/program/opcodes.def"
#undef INGOT_PARAM
#undef INGOT_ARGUMENT

  // Any instruction; its labels are LabelIds as long as the function is not finished.
  void Emit(Instruction instruction);
  // Patches labels. A label that is used and never bound is a broken invariant of the caller.
  Function Finish() &&;

 private:
  template <typename Tag>
  static Operand Encode(Id<Tag> id) {
    return int64_t{id.value};
  }
  static Operand Encode(int64_t value) { return value; }
  static Operand Encode(bool value) { return int64_t{value}; }
  static Operand Encode(double value) { return std::bit_cast<int64_t>(value); }
  static Operand Encode(DataType dtype) { return PackDataType(dtype); }
  static Operand Encode(vm::Builtin builtin) { return static_cast<int64_t>(builtin); }
  static Operand Encode(DimCode code) { return code; }
  static Operand Encode(std::vector<DimCode> codes) { return codes; }
  static Operand Encode(std::string text) { return text; }
  static Operand Encode(std::vector<RegisterId> registers);

  Function function_;
  std::vector<int64_t> labels_;  // LabelId -> instruction index; -1 while not bound
};

}  // namespace ingot::vm
