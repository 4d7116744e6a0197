// The text of an executable assembles back to the same bytes: tests check it for every executable that they make.
#pragma once

#include <doctest/doctest.h>

#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler.h"

namespace ingot::test {

inline void CheckRoundTrip(const vm::Program& program) {
  const Result<vm::Program> again = vm::Assemble(vm::Disassemble(program));
  REQUIRE_MESSAGE(again.ok(), again.status().message());
  CHECK(vm::EncodeProgram(*again).value() == vm::EncodeProgram(program).value());
}

// Assembles a text, which must be correct.
inline vm::Program Assembled(std::string_view text) {
  Result<vm::Program> program = vm::Assemble(text);
  REQUIRE_MESSAGE(program.ok(), program.status().message());
  CheckRoundTrip(*program);
  return *std::move(program);
}

}  // namespace ingot::test
