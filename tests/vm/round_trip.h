// The text of an executable assembles back to the same bytes: tests check it for every executable that they make.
#pragma once

#include <doctest/doctest.h>

#include "vm/assembler.h"
#include "vm/disassembler.h"
#include "vm/program_codec.h"

namespace ingot::test {

inline void CheckRoundTrip(const vm::Program& program) {
  const Result<vm::Program> again = vm::Assemble(vm::Disassemble(program));
  REQUIRE_MESSAGE(again.ok(), again.status().message());
  CHECK(vm::EncodeProgram(*again).value() == vm::EncodeProgram(program).value());
}

}  // namespace ingot::test
