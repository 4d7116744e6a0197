// Executables of released formats, which are kept and never made anew (tests/data/kept/README.md): each opens,
// verifies, and gives what its own golden cases say. A change of the format that forgets them shows here.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "formats/file.h"
#include "formats/signature.h"
#include "formats/signing.h"
#include "formats/tensor_compare.h"
#include "tests/golden.h"
#include "vm/program/golden_cases.h"
#include "vm/program/program_codec.h"
#include "vm/run/context.h"
#include "vm/run/executable.h"

namespace ingot::vm {
namespace {

namespace fs = std::filesystem;

void RunGoldenCases(const fs::path& path) {
  CAPTURE(path.filename().string());
  OpenOptions options;
  options.trust = Trust::kFile;
  options.verify_constants = true;
  const auto executable = Executable::Open(*Instance::Create(), path.string(), options);
  REQUIRE_MESSAGE(executable.ok(), executable.status().message());
  const auto cases = DecodeGoldenCases(*(*executable)->container());
  REQUIRE_MESSAGE(cases.ok(), cases.status().message());
  REQUIRE_FALSE(cases->empty());
  const auto context = *Context::Create(*executable);
  for (const GoldenCase& golden : *cases) {
    const Function* function = *(*executable)->Find(golden.function);
    std::vector<Value> arguments;
    for (const NamedType& param : function->signature.params) {
      const auto found = std::ranges::find(golden.inputs, param.name, &GoldenTensor::name);
      REQUIRE(found != golden.inputs.end());
      arguments.emplace_back(found->tensor);
    }
    const auto results = context->Invoke(*function, arguments);
    REQUIRE_MESSAGE(results.ok(), results.status().message());
    REQUIRE(results->size() == golden.outputs.size());
    for (size_t i = 0; i < results->size(); ++i) {
      const auto comparison = formats::CompareTensors(std::get<Tensor>((*results)[i]), golden.outputs[i].tensor,
                                                      {golden.relative_tolerance, golden.absolute_tolerance});
      REQUIRE_MESSAGE(comparison.ok(), comparison.status().message());
      CHECK_MESSAGE(comparison->equal, comparison->ToString());
    }
  }
}

TEST_CASE("kept executables still give their results") {
#if defined(__x86_64__)
  int num_files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(golden::TestDirectory()) / "data/kept")) {
    if (entry.path().extension() != ".ingot") continue;
    RunGoldenCases(entry.path());
    ++num_files;
  }
  CHECK(num_files >= 7);
#else
  std::puts("SKIP: kept executables, whose kernels are for x86-64");
#endif
}

TEST_CASE("a kept signature still holds, of its key alone") {
  if (!formats::CanCheckSignatures()) {
    std::puts("SKIP: a kept signature, in a build without libsodium");
    return;
  }
  const fs::path folder = fs::path(golden::TestDirectory()) / "data/kept";
  const auto open = [&](const char* file, PublicKey key) {
    OpenOptions options;
    options.trust = Trust::kPolicy;
    options.policy.keys = {key};
    options.stub_kernels = true;  // of any machine; the caller's policy holds all the same
    return Executable::Open(*Instance::Create(), (folder / file).string(), options).status();
  };
  PublicKey key = *formats::ReadPublicKey((folder / "1_signed.pub").string());
  CHECK(open("1_signed.ingot", key).ok());
  CHECK(open("1_raw.ingot", key).code() == StatusCode::kNotTrusted);
  key[0] ^= 1;
  CHECK(open("1_signed.ingot", key).code() == StatusCode::kNotTrusted);
}

TEST_CASE("kept executables are still what this version writes for them") {
  for (const auto& entry : fs::directory_iterator(fs::path(golden::TestDirectory()) / "data/kept")) {
    if (entry.path().extension() != ".ingot") continue;
    CAPTURE(entry.path().filename().string());
    const SharedBytes bytes = *formats::MapFile(entry.path().string());
    const formats::Container container = *formats::Container::Open(bytes);
    const auto program = DecodeProgram(container);
    REQUIRE_MESSAGE(program.ok(), program.status().message());
    const std::vector<std::byte> again = *EncodeProgram(*program);
    const formats::Container second = *formats::Container::Open(SharedBytes(nullptr, again));
    for (const formats::Section& section : container.sections()) {
      using formats::SectionKind;
      // Sections that are not made from the program, or that a library compresses whose output may change.
      if (section.kind == SectionKind::kGoldenCases || section.kind == SectionKind::kConstantData ||
          section.kind == SectionKind::kSignature) {
        continue;
      }
      CAPTURE(section.Label());
      const formats::Section* other = second.Find(section.kind, section.index);
      REQUIRE(other != nullptr);
      CHECK(std::ranges::equal(container.StoredBytes(section), second.StoredBytes(*other)));
    }
  }
}

}  // namespace
}  // namespace ingot::vm
