// The golden tests of the VM half: tests/golden/vm.
#include "tests/golden.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "vm/assembler.h"
#include "vm/disassembler.h"

namespace ingot::vm {
namespace {

Result<Program> AssembleCase(const golden::Case& golden) {
  // The first line of the file is the RUN line: line numbers in messages are those of the input.
  return Assemble(golden.input, std::filesystem::path(golden.path).filename().string());
}

// assemble: the program as it prints; it must read back to the same text.
Result<std::string> RunAssemble(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const Program program, AssembleCase(golden));
  std::string text = Disassemble(program);
  INGOT_ASSIGN_OR_RETURN(const Program again, Assemble(text));
  CHECK(Disassemble(again) == text);
  return text;
}

constexpr golden::Directive kDirectives[] = {
    {"assemble", RunAssemble},
};

TEST_CASE("golden: vm") { golden::RunArea("vm", kDirectives); }

}  // namespace
}  // namespace ingot::vm
