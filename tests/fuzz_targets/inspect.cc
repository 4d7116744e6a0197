// What vm-inspect does with any bytes, with their hashes made true: it shows what cannot be run, too. The tables are
// decoded without the weights, printed, and judged as --doctor does.
#include "tests/formats/recompute_hashes.h"
#include "tests/fuzz_targets/target.h"
#include "vm/program/program_codec.h"
#include "vm/text/disassembler.h"
#include "vm/tools/doctor.h"
#include "vm/verify/verifier.h"

namespace ingot::fuzz {
namespace {

void Inspect(const SharedBytes& bytes) {
  std::vector<formats::ContainerFinding> findings;
  const auto container = formats::Container::Inspect(bytes, {}, &findings);
  if (!container.ok()) return;
  const auto program = vm::DecodeProgramWithoutWeights(*container);
  if (!program.ok()) return;
  vm::DisassembleOptions print;
  print.blobs = false;
  (void)vm::Disassemble(*program, print);
  const bool is_sound = vm::Verify(*program).ok();
  if (!findings.empty() || !is_sound) return;
  vm::DoctorOptions options;
  options.file = bytes.bytes;
  for (const vm::Finding& finding : vm::Diagnose(*container, *program, options)) INGOT_CHECK(!finding.what.empty());
}

}  // namespace
}  // namespace ingot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes = ingot::fuzz::CopyOf(data, size);
  ingot::test::RecomputeContainerHashes(bytes);
  ingot::fuzz::Inspect(ingot::SharedBytes::Own(std::move(bytes)));
  return 0;
}
