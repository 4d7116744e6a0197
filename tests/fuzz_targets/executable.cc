// Executables: any bytes, with their hashes made true, are decoded, verified, linked and run on stub kernels; what is
// verified prints as a text that assembles to the same program.
#include "tests/formats/recompute_hashes.h"
#include "tests/fuzz_targets/target.h"
#include "vm/program/golden_cases.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"
#include "vm/text/disassembler.h"

namespace ingot::fuzz {
namespace {

void TryExecutable(const SharedBytes& bytes) {
  formats::ContainerOptions container_options;
  container_options.max_decompressed_bytes = kMaxConstantBytes;
  const auto container = formats::Container::Open(bytes, container_options);
  if (!container.ok()) return;
  (void)vm::DecodeGoldenCases(*container);
  vm::OpenOptions options;
  options.stub_kernels = true;
  const auto executable = vm::Executable::OpenMemory(TheInstance(), bytes, "m", options);
  if (!executable.ok()) return;
  RunFunctions(*executable);
  const vm::Program& program = (*executable)->program();
  const auto again = vm::Assemble(vm::Disassemble(program));
  INGOT_CHECK(again.ok(), again.status().message().c_str());
  INGOT_CHECK(*vm::EncodeProgram(*again) == *vm::EncodeProgram(program));
}

}  // namespace
}  // namespace ingot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes = ingot::fuzz::CopyOf(data, size);
  ingot::test::RecomputeContainerHashes(bytes);
  ingot::fuzz::TryExecutable(ingot::SharedBytes::Own(std::move(bytes)));
  return 0;
}
