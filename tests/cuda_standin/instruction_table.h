// The table of instructions: one row per form, written as in the manual of PTX: {.a|.b} is left out or one of these,
// (.a|.b) is one of these. A statement whose opcode no row matches is refused by its name.
//
// The signature lists operands: "=u32" is written, "u32" read, "?u32" may be left out, "4xf32" is a vector in braces,
// "Vxf32" one of as many elements as .v2 and .v4 say, "b32|pred" a pair whose second part may be left out ("pred|-": has to), "A" an
// address, "I" an integer constant. A row takes what ptxas takes and nothing else. A star after "=" or in front ("*u8") allows wider registers. Types are those of TypeName.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/status.h"
#include "tests/cuda_standin/program.h"

namespace ingot::ptx {

struct Row {
  std::string pattern;
  std::string signature;
  Handler handler = nullptr;
  uint8_t variant = 0;
  Flow flow = Flow::kNext;
  uint8_t element_bytes = 0;
  Space space = Space::kGeneric;
  int from_sm = 0;        // the lowest architecture (.target) that has it
  bool is_exact = false;  // no other one has it: .target sm_90a
};

enum class Compare : uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kLo,
  kLs,
  kHi,
  kHs,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan
};
enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };

using Rows = std::vector<Row>;
void AddIntegerRows(Rows& rows);
void AddFloatRows(Rows& rows);
void AddConvertRows(Rows& rows);
void AddMemoryRows(Rows& rows);
void AddWarpRows(Rows& rows);
void AddMatrixRows(Rows& rows);
void AddGroupMatrixRows(Rows& rows);

// All rows, in the order of the families.
const Rows& InstructionTable();
// The row of an opcode, with what its modifiers say written into the instruction; null without one.
const Row* FindRow(std::string_view opcode, Instruction& instruction);

}  // namespace ingot::ptx
