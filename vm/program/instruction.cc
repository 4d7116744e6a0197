// The rows of opcodes.def as data, looked up by number and by name.
#include "vm/program/instruction.h"

#include <array>

#include "runtime/check.h"
#include "vm/program/foreach.h"

namespace ingot::vm {
namespace {

#define INGOT_OPERAND_SPEC(kind, accepts, name) \
  OperandSpec { OperandKind::k##kind, Accepts::k##accepts, #name }
#define INGOT_OPCODE(number, Name, text, semantics, ...) \
  constexpr OperandSpec k##Name##Operands[] = {INGOT_FOR_EACH(INGOT_OPERAND_SPEC, __VA_ARGS__)};
#include "vm/program/opcodes.def"

constexpr OpcodeInfo kOpcodeRows[] = {
#define INGOT_OPCODE(number, Name, text, semantics, ...) {Opcode::k##Name, text, semantics, k##Name##Operands},
#include "vm/program/opcodes.def"
};

constexpr auto kByNumber = [] {
  std::array<const OpcodeInfo*, 256> rows{};
  for (const OpcodeInfo& row : kOpcodeRows) rows[static_cast<size_t>(row.opcode)] = &row;
  return rows;
}();

}  // namespace

std::span<const OpcodeInfo> AllOpcodes() { return kOpcodeRows; }

const OpcodeInfo* FindOpcode(uint64_t number) { return number < kByNumber.size() ? kByNumber[number] : nullptr; }

const OpcodeInfo* FindOpcode(std::string_view name) {
  for (const OpcodeInfo& row : kOpcodeRows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

const OpcodeInfo& InfoOf(Opcode opcode) {
  const OpcodeInfo* info = kByNumber[static_cast<size_t>(opcode)];
  INGOT_CHECK(info != nullptr, "an opcode without a row");
  return *info;
}

int64_t PackDataType(DataType dtype) {
  return static_cast<int64_t>(dtype.code) | int64_t{dtype.bits} << 8 | int64_t{dtype.lanes} << 16;
}

DataType UnpackDataType(int64_t packed) {
  DataType dtype;
  dtype.code = static_cast<TypeCode>(packed & 0xff);
  dtype.bits = static_cast<uint8_t>(packed >> 8 & 0xff);
  dtype.lanes = static_cast<uint16_t>(packed >> 16 & 0xffff);
  return dtype;
}

}  // namespace ingot::vm
