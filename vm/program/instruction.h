// Opcodes and decoded instructions. Everything here comes from the one table vm/program/opcodes.def: the enum; for each
// opcode its row (name, columns, operands), by which codec, assembler, disassembler, builder, verifier and linker work
// without knowing single opcodes; and a class by which others read the operands of an instruction by name. Instructions
// are plain data; nothing here proves them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/check.h"
#include "runtime/data_type.h"
#include "runtime/dim_code.h"
#include "vm/program/foreach.h"
#include "vm/program/ids.h"
#include "vm/program/type.h"

namespace ingot::vm {

enum class Opcode : uint8_t {
#define INGOT_OPCODE(number, Name, text, flow, result, calls, uses, semantics, ...) k##Name = number,
#include "vm/program/opcodes.def"
};

// What an operand slot of an opcode holds. Def and Use carry the kind of value that the register must have.
enum class OperandKind : uint8_t {
  kDef,      // register, written
  kUse,      // register, read
  kDefList,  // registers, written
  kUseList,  // registers, read
  kInt,      // int64
  kFloat,    // float64
  kBool,     // 0 or 1
  kText,     // string
  kDType,    // element type
  kDim,      // DimCode; its slots are int registers of the function
  kDimList,  // DimCodes
  kLabel,    // instruction index in this function
  kKernel,   // indexes of the program's tables
  kBuiltin,  // a row of vm/program/builtins.def
  kFunction,
  kExternal,
  kConstant,
  kState,
  kPlanEntry,  // index into the function's memory plan
  kStream,     // stream number; 0, the only one there is now, is not printed
};

// The register kinds that a Def or Use accepts.
enum class Accepts : uint8_t {
  kInt = 0,
  kFloat = 1,
  kBool = 2,
  kString = 3,
  kDataType = 4,
  kShape = 5,
  kTensor = 6,
  kTuple = 7,
  kOptional = 8,
  kClosure = 9,
  kObject = 10,
  kScalar = 100,  // int, float or bool
  kAny = 101,
  kNone = 102,  // not a register
};

struct OperandSpec {
  OperandKind kind;
  Accepts accepts;
  const char* name;
};

// Where the code goes on behind an instruction.
enum class Flow : uint8_t {
  kNext,  // at the next instruction
  kJump,  // at one of its labels
  kEnd,   // nowhere: it leaves the function
};

// The memory of the tensor that an instruction makes in its one Def operand.
enum class ResultMemory : uint8_t {
  kNone,      // no tensor is made, or a callee or an object gives it
  kOwned,     // new memory, of storage owned; the elements are not initialised
  kFilled,    // the same, with elements that the instruction writes
  kBound,     // the tensor that the caller bound to a result, else as kOwned; the elements are not initialised
  kArena,     // an entry of the memory plan; the elements are not initialised
  kConstant,  // a constant of the program
  kState,     // a state of the context
  kAlias,     // the memory of the tensor in the one Use operand
  kHolder,    // an object is made, which keeps the memory of the operands that the instruction uses
};

// What an instruction calls.
enum class Callee : uint8_t { kNothing, kKernel, kBuiltin, kFunction, kExternal };

// What an instruction does with the registers that it uses.
enum class Uses : uint8_t {
  kContents,  // reads or writes what they hold, or passes it on
  kDims,      // looks at the dims of tensors alone
  kDrop,      // drops what they hold
};

struct OpcodeInfo {
  Opcode opcode;
  const char* name;
  Flow flow;
  ResultMemory result;
  Callee calls;
  Uses uses;
  const char* semantics;
  std::span<const OperandSpec> operands;

  // Whether the result is a tensor whose elements nothing has written yet.
  constexpr bool makes_raw_memory() const {
    return result == ResultMemory::kOwned || result == ResultMemory::kBound || result == ResultMemory::kArena;
  }
  // Whether the result is a tensor of new memory.
  constexpr bool allocates() const {
    return result == ResultMemory::kOwned || result == ResultMemory::kBound || result == ResultMemory::kFilled;
  }
};

// All rows, by ascending number.
std::span<const OpcodeInfo> AllOpcodes();
// Null for an unknown number.
const OpcodeInfo* FindOpcode(uint64_t number);
const OpcodeInfo* FindOpcode(std::string_view name);
const OpcodeInfo& InfoOf(Opcode opcode);

// One operand's value as it is stored. Single registers, ids, labels, ints, bools, streams and dtypes (code | bits << 8
// | lanes << 16) are the int64; floats are their bit pattern in the int64; register lists, dims and texts as named.
using RegisterList = std::vector<uint32_t>;
using Operand = std::variant<int64_t, RegisterList, DimCode, std::vector<DimCode>, std::string>;

int64_t PackDataType(DataType dtype);
DataType UnpackDataType(int64_t packed);  // any value gives some DataType; IsKnown() judges it

// A register list whose elements are read as ids of this type.
template <typename Id>
class IdList {
 public:
  class Iterator {
   public:
    explicit Iterator(const uint32_t* at) : at_(at) {}
    Id operator*() const { return Id(*at_); }
    Iterator& operator++() { return ++at_, *this; }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    const uint32_t* at_;
  };
  IdList() = default;
  explicit IdList(const RegisterList& list) : values_(list) {}
  size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  Id operator[](size_t i) const { return Id(values_[i]); }
  Iterator begin() const { return Iterator(values_.data()); }
  Iterator end() const { return Iterator(values_.data() + values_.size()); }

 private:
  std::span<const uint32_t> values_;
};

enum class Builtin : uint32_t;  // vm/program/builtins.h

// What an operand of each kind is to those who read it. Registers are of type Register.
template <typename Register>
struct OperandReader {
  static int64_t Int(const Operand& operand) { return std::get<int64_t>(operand); }
  static uint32_t Index(const Operand& operand) { return static_cast<uint32_t>(Int(operand)); }
  static Register Def(const Operand& operand) { return Register(Index(operand)); }
  static Register Use(const Operand& operand) { return Register(Index(operand)); }
  static IdList<Register> DefList(const Operand& operand) { return IdList<Register>(std::get<RegisterList>(operand)); }
  static IdList<Register> UseList(const Operand& operand) { return IdList<Register>(std::get<RegisterList>(operand)); }
  static double Float(const Operand& operand) { return std::bit_cast<double>(Int(operand)); }
  static bool Bool(const Operand& operand) { return Int(operand) != 0; }
  static const std::string& Text(const Operand& operand) { return std::get<std::string>(operand); }
  static DataType DType(const Operand& operand) { return UnpackDataType(Int(operand)); }
  static const DimCode& Dim(const Operand& operand) { return std::get<DimCode>(operand); }
  static const std::vector<DimCode>& DimList(const Operand& operand) { return std::get<std::vector<DimCode>>(operand); }
  static LabelId Label(const Operand& operand) { return LabelId(Index(operand)); }
  static KernelId Kernel(const Operand& operand) { return KernelId(Index(operand)); }
  static vm::Builtin Builtin(const Operand& operand) { return static_cast<vm::Builtin>(Index(operand)); }
  static FunctionId Function(const Operand& operand) { return FunctionId(Index(operand)); }
  static ExternalId External(const Operand& operand) { return ExternalId(Index(operand)); }
  static ConstantId Constant(const Operand& operand) { return ConstantId(Index(operand)); }
  static StateId State(const Operand& operand) { return StateId(Index(operand)); }
  static PlanEntryId PlanEntry(const Operand& operand) { return PlanEntryId(Index(operand)); }
  static int64_t Stream(const Operand& operand) { return Int(operand); }
};

// The operands of each opcode by their names, such as op::PlanView<>::entry(). The classes are views that borrow the
// operands of an instruction; BasicInstruction::As makes them. Registers are of type Register: RegisterId in a program,
// FrameOffset in linked code.
namespace op {
#define INGOT_OPERAND_PLACE(kind, accepts, name) kPlaceOf_##name
#define INGOT_OPERAND_READER(kind, accepts, name) \
  decltype(auto) name() const { return OperandReader<Register>::kind(operands_[kPlaceOf_##name]); }
#define INGOT_OPCODE(number, Name, text, flow, result, calls, uses, semantics, ...) \
  template <typename Register = RegisterId>                                         \
  class Name {                                                                      \
   public:                                                                          \
    static constexpr Opcode kOpcode = Opcode::k##Name;                              \
    explicit Name(const Operand* operands) : operands_(operands) {}                 \
    INGOT_DECLARE_EACH(INGOT_OPERAND_READER, __VA_ARGS__)                           \
                                                                                    \
   private:                                                                         \
    enum : size_t { INGOT_FOR_EACH(INGOT_OPERAND_PLACE, __VA_ARGS__) };             \
    const Operand* operands_;                                                       \
  };
#include "vm/program/opcodes.def"
#undef INGOT_OPERAND_PLACE
#undef INGOT_OPERAND_READER
}  // namespace op

// The operands of an instruction with their specs, in the order of the row. It is for code that treats all opcodes
// alike, which is the only code that knows operands by their place:
//
//   for (const auto& [spec, value] : instruction.operands()) ...
//
// Value is Operand or const Operand.
template <typename Value>
class OperandRange {
 public:
  struct Element {
    const OperandSpec& spec;
    Value& value;
  };
  class Iterator {
   public:
    Iterator(const OperandSpec* spec, Value* value) : spec_(spec), value_(value) {}
    Element operator*() const { return {*spec_, *value_}; }
    Iterator& operator++() { return ++spec_, ++value_, *this; }
    friend bool operator==(Iterator a, Iterator b) { return a.value_ == b.value_; }

   private:
    const OperandSpec* spec_;
    Value* value_;
  };
  OperandRange(const OperandSpec* specs, std::span<Value> values) : specs_(specs), values_(values) {}
  size_t size() const { return values_.size(); }
  Element operator[](size_t i) const { return {specs_[i], values_[i]}; }
  Iterator begin() const { return Iterator(specs_, values_.data()); }
  Iterator end() const { return Iterator(specs_ + values_.size(), values_.data() + values_.size()); }

 private:
  const OperandSpec* specs_;
  std::span<Value> values_;
};

// An opcode and its operands, in which registers are of type Register.
template <typename Register>
class BasicInstruction {
 public:
  Opcode opcode{};

  BasicInstruction() = default;
  BasicInstruction(Opcode op, std::vector<Operand> operands) : opcode(op), operands_(std::move(operands)) {}

  // The operands by name; the instruction is of this opcode.
  template <template <typename> class Op>
  Op<Register> As() const {
    INGOT_CHECK(opcode == Op<Register>::kOpcode, "another opcode's operands");
    return Op<Register>(operands_.data());
  }
  OperandRange<Operand> operands() { return {InfoOf(opcode).operands.data(), operands_}; }
  OperandRange<const Operand> operands() const { return {InfoOf(opcode).operands.data(), operands_}; }

  friend bool operator==(const BasicInstruction&, const BasicInstruction&) = default;

 private:
  std::vector<Operand> operands_;  // in the order of the opcode's row
};

using Instruction = BasicInstruction<RegisterId>;

// Calls visit(register, is_written) for the register operands in order; registers in formulas are left out.
template <typename Visit>
void ForEachRegister(const Instruction& instruction, Visit visit) {
  for (const auto& [spec, value] : instruction.operands()) {
    const bool is_written = spec.kind == OperandKind::kDef || spec.kind == OperandKind::kDefList;
    if (is_written || spec.kind == OperandKind::kUse || spec.kind == OperandKind::kUseList) {
      if (const auto* list = std::get_if<RegisterList>(&value)) {
        for (const uint32_t index : *list) visit(RegisterId(index), is_written);
      } else {
        visit(OperandReader<RegisterId>::Use(value), is_written);
      }
    }
  }
}

// Calls visit(index) with the index of each instruction to which this one may jump.
template <typename Visit>
void ForEachLabel(const Instruction& instruction, Visit visit) {
  if (InfoOf(instruction.opcode).flow != Flow::kJump) return;
  for (const auto& [spec, value] : instruction.operands()) {
    if (spec.kind == OperandKind::kLabel) visit(OperandReader<RegisterId>::Label(value).value);
  }
}

// The register in which an instruction of some ResultMemory other than kNone makes its result.
RegisterId ResultOf(const Instruction& instruction);
// The register whose memory the result of an instruction of ResultMemory::kAlias shows.
RegisterId AliasedBy(const Instruction& instruction);

}  // namespace ingot::vm
