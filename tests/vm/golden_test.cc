// The golden tests of the VM half: tests/golden/vm, one test case per folder.
#include "tests/golden.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/left_out_checks.h"
#include "tests/vm/round_trip.h"
#include "tests/vm/run_directive.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler.h"
#include "vm/verify/verifier.h"

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

// verify: written to a file in memory and read back, the program is the same, and passes the verifier.
Result<std::string> RunVerify(const golden::Case& golden) {
  INGOT_ASSIGN_OR_RETURN(const Program program, AssembleCase(golden));
  INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, EncodeProgram(program));
  INGOT_ASSIGN_OR_RETURN(const formats::Container container, formats::Container::Open(SharedBytes::Own(bytes)));
  INGOT_ASSIGN_OR_RETURN(const Program decoded, DecodeProgram(container, test::VmChecks()));
  CHECK(Disassemble(decoded) == Disassemble(program));
  CHECK(*EncodeProgram(decoded) == bytes);
  test::CheckRoundTrip(decoded);
  INGOT_RETURN_IF_ERROR(Verify(decoded, test::VmChecks()));
  return std::string("verified");
}

constexpr golden::Directive kDirectives[] = {
    {"assemble", RunAssemble},
    {"run", RunRun},
    {"verify", RunVerify},
};

TEST_CASE("golden: vm/assembler") { golden::RunArea("vm/assembler", kDirectives); }
TEST_CASE("golden: vm/run") { golden::RunArea("vm/run", kDirectives); }
TEST_SUITE("checks") {
  TEST_CASE("golden: vm/verifier") { golden::RunArea("vm/verifier", kDirectives); }
}

}  // namespace
}  // namespace ingot::vm
