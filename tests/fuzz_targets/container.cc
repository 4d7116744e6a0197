// The container: any bytes are opened and inspected, as they are and with their hashes made true, and every section of
// what opens is read. What opens without a failure is inspected without a finding.
#include "formats/container.h"

#include "tests/formats/recompute_hashes.h"
#include "tests/fuzz_targets/target.h"

namespace ingot::fuzz {
namespace {

void TryContainer(const SharedBytes& bytes) {
  formats::ContainerOptions options;
  options.max_decompressed_bytes = kMaxConstantBytes;
  std::vector<formats::ContainerFinding> findings;
  const auto inspected = formats::Container::Inspect(bytes, options, &findings);
  const auto opened = formats::Container::Open(bytes, options);
  INGOT_CHECK(opened.ok() == (inspected.ok() && findings.empty()));
  if (inspected.ok()) {
    for (const formats::Section& section : inspected->sections()) (void)inspected->StoredBytes(section);
  }
  if (!opened.ok()) return;
  for (const formats::Section& section : opened->sections()) {
    const auto read = opened->Read(section);
    INGOT_CHECK(!read.ok() || read->size() == section.size);
  }
  (void)opened->VerifyHashes();
}

}  // namespace
}  // namespace ingot::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes = ingot::fuzz::CopyOf(data, size);
  ingot::fuzz::TryContainer(ingot::SharedBytes::Own(bytes));
  ingot::test::RecomputeContainerHashes(bytes);
  ingot::fuzz::TryContainer(ingot::SharedBytes::Own(std::move(bytes)));
  return 0;
}
