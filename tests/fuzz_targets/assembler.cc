// The assembler: any text is assembled or refused. What assembles prints as a text that assembles to equal bytes,
// whether the program is sound or not.
#include "vm/text/assembler.h"

#include "tests/fuzz_targets/target.h"
#include "vm/program/program_codec.h"
#include "vm/text/disassembler.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;  // NOLINT: a function of C's has no namespace
  const auto program = vm::Assemble(fuzz::TextOf(data, size));
  if (!program.ok() || fuzz::ConstantBytes(*program) > fuzz::kMaxConstantBytes) return 0;
  const auto bytes = vm::EncodeProgram(*program);
  const auto again = vm::Assemble(vm::Disassemble(*program));
  INGOT_CHECK(again.ok(), again.status().message().c_str());
  const auto bytes_again = vm::EncodeProgram(*again);
  INGOT_CHECK(bytes.ok() == bytes_again.ok());
  INGOT_CHECK(!bytes.ok() || *bytes == *bytes_again);
  return 0;
}
