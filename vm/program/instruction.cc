// The rows of opcodes.def as data, looked up by number and by name.
#include "vm/program/instruction.h"

#include <algorithm>
#include <array>

#include "runtime/check.h"
#include "vm/program/foreach.h"

namespace ingot::vm {
namespace {

#define INGOT_OPERAND_SPEC(kind, accepts, name) \
  OperandSpec { OperandKind::k##kind, Accepts::k##accepts, #name }
#define INGOT_OPCODE(number, Name, text, flow, result, calls, uses, semantics, ...) \
  constexpr OperandSpec k##Name##Operands[] = {INGOT_FOR_EACH(INGOT_OPERAND_SPEC, __VA_ARGS__)};
#include "vm/program/opcodes.def"

constexpr OpcodeInfo kOpcodeRows[] = {
#define INGOT_OPCODE(number, Name, text, flow, result, calls, uses, semantics, ...) \
  {Opcode::k##Name,  text,          Flow::k##flow, ResultMemory::k##result,         \
   Callee::k##calls, Uses::k##uses, semantics,     k##Name##Operands},
#include "vm/program/opcodes.def"
};

constexpr int64_t CountOf(const OpcodeInfo& row, OperandKind kind) {
  return std::ranges::count(row.operands, kind, &OperandSpec::kind);
}

// What readers of the columns rely on.
constexpr bool ColumnsAgree(const OpcodeInfo& row) {
  const bool has_labels = CountOf(row, OperandKind::kLabel) > 0;
  const bool has_result = row.result != ResultMemory::kNone;
  const bool is_alias = row.result == ResultMemory::kAlias;
  return (row.flow == Flow::kJump) == has_labels && (!has_result || CountOf(row, OperandKind::kDef) == 1) &&
         (!is_alias || CountOf(row, OperandKind::kUse) == 1);
}
static_assert(std::ranges::all_of(kOpcodeRows, ColumnsAgree));

constexpr auto kByNumber = [] {
  std::array<const OpcodeInfo*, 256> rows{};
  for (const OpcodeInfo& row : kOpcodeRows) rows[static_cast<size_t>(row.opcode)] = &row;
  return rows;
}();

RegisterId FirstOf(OperandKind kind, const Instruction& instruction) {
  for (const auto& [spec, value] : instruction.operands()) {
    if (spec.kind == kind) return OperandReader<RegisterId>::Use(value);
  }
  INGOT_UNREACHABLE("an opcode without such an operand");
}

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

RegisterId ResultOf(const Instruction& instruction) { return FirstOf(OperandKind::kDef, instruction); }

RegisterId AliasedBy(const Instruction& instruction) { return FirstOf(OperandKind::kUse, instruction); }

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
