// Opcodes and decoded instructions. Everything here comes from the one table vm/program/opcodes.def: the enum, and for each
// opcode its row (name, operands, semantics), by which the codec, assembler, disassembler, builder and operand verifier
// work without knowing single opcodes. Instructions are plain data; nothing here proves them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/data_type.h"
#include "runtime/dim_code.h"
#include "vm/program/type.h"

namespace ingot::vm {

enum class Opcode : uint8_t {
#define INGOT_OPCODE(number, Name, text, semantics, ...) k##Name = number,
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

struct OpcodeInfo {
  Opcode opcode;
  const char* name;
  const char* semantics;
  std::span<const OperandSpec> operands;
};

// All rows, by ascending number.
std::span<const OpcodeInfo> AllOpcodes();
// Null for an unknown number.
const OpcodeInfo* FindOpcode(uint64_t number);
const OpcodeInfo* FindOpcode(std::string_view name);
const OpcodeInfo& InfoOf(Opcode opcode);

// One operand's value. Single registers, ids, labels, ints, bools, streams and dtypes (code | bits << 8 | lanes << 16)
// are the int64; floats are their bit pattern in the int64; register lists, dims and texts as named.
using RegisterList = std::vector<uint32_t>;
using Operand = std::variant<int64_t, RegisterList, DimCode, std::vector<DimCode>, std::string>;

struct Instruction {
  Opcode opcode;
  std::vector<Operand> operands;  // in the order of the opcode's row

  int64_t scalar(size_t i) const { return std::get<int64_t>(operands[i]); }
  uint32_t reg(size_t i) const { return static_cast<uint32_t>(std::get<int64_t>(operands[i])); }
  const RegisterList& registers(size_t i) const { return std::get<RegisterList>(operands[i]); }
  const DimCode& dim(size_t i) const { return std::get<DimCode>(operands[i]); }
  const std::vector<DimCode>& dims(size_t i) const { return std::get<std::vector<DimCode>>(operands[i]); }
  const std::string& text(size_t i) const { return std::get<std::string>(operands[i]); }

  friend bool operator==(const Instruction&, const Instruction&) = default;
};

int64_t PackDataType(DataType dtype);
DataType UnpackDataType(int64_t packed);  // any value gives some DataType; IsKnown() judges it

}  // namespace ingot::vm
