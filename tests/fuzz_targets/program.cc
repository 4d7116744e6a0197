// Programs: any text that assembles is verified, linked and run on stub kernels. The assembler writes unsound programs
// as well as sound ones, so that changes of the text reach the verifier's rules one by one.
#include "tests/fuzz_targets/target.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"
#include "vm/verify/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ingot;  // NOLINT: a function of C's has no namespace
  auto program = vm::Assemble(fuzz::TextOf(data, size));
  if (!program.ok() || fuzz::ConstantBytes(*program) > fuzz::kMaxConstantBytes) return 0;
  if (!vm::Verify(*program).ok()) return 0;
  // A sound program is one when it was written and read, too.
  auto bytes = vm::EncodeProgram(*program);
  INGOT_CHECK(bytes.ok(), bytes.status().message().c_str());
  vm::OpenOptions options;
  options.stub_kernels = true;
  const auto executable =
      vm::Executable::OpenMemory(fuzz::TheInstance(), SharedBytes::Own(*std::move(bytes)), "m", options);
  if (executable.ok()) fuzz::RunFunctions(*executable);
  return 0;
}
