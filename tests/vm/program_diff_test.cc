#include "vm/tools/program_diff.h"

#include <doctest/doctest.h>

#include "formats/container_writer.h"
#include "formats/signature.h"
#include "vm/program/program_codec.h"
#include "vm/text/assembler.h"
#include "vm/tools/doctor.h"

namespace ingot::vm {
namespace {

constexpr const char* kText = R"(ingot 1
metadata "target" = "cpu"
device "cpu" 0
constant "w" float32[2] = 1, 2
constant "" float32[1] = 3
external @f(x: float32[2]) -> (y: float32[2])
function @main export [n](x: float32[n]) -> (y: float32[n]) {
  register r2: float32[n]
  copy r2, r1
  return [r2]
}
)";

std::vector<std::string> DiffAfter(const std::string& from, const std::string& to) {
  std::string text = kText;
  text.replace(text.find(from), from.size(), to);
  return DiffPrograms(*Assemble(kText), *Assemble(text));
}

TEST_CASE("equal programs do not differ, and each difference is named") {
  CHECK(DiffPrograms(*Assemble(kText), *Assemble(kText)).empty());
  const auto one = [](const std::vector<std::string>& lines) { return lines.size() == 1 ? lines[0] : "not one line"; };
  CHECK(one(DiffAfter("\"cpu\"\n", "\"gpu\"\n")) == "metadata \"target\": \"cpu\" -> \"gpu\"");
  CHECK(one(DiffAfter("device \"cpu\" 0", "device \"cpu\" 1")) == "devices: cpu 0 -> cpu 1");
  CHECK(one(DiffAfter("1, 2", "1, 5")) == "constant \"w\": other elements");
  CHECK(one(DiffAfter("float32[2] = 1, 2", "float32[1] = 1")) == "constant \"w\": float32[2] -> float32[1]");
  CHECK(one(DiffAfter("= 3", "= 4")) == "constant #1: other elements");
  CHECK(DiffAfter("\"w\"", "\"v\"") ==
        std::vector<std::string>{"constant \"w\": only in the first", "constant \"v\": only in the second"});
  CHECK(DiffAfter("@f", "@g").size() == 2);
  CHECK(one(DiffAfter("  copy r2, r1\n  return [r2]", "  alloc r2, [n]\n  return [r2]"))
            .starts_with("function \"main\": 2 instructions -> 2; the first line that differs: \"  copy"));
  CHECK(one(DiffAfter("float32[2] = 1, 2", "float32[2] weight = 1, 2")).starts_with("replaceable weights: 0 -> 1"));
}

TEST_CASE("the doctor says what is missing without reading weights") {
  const std::vector<std::byte> bytes = *EncodeProgram(*Assemble(kText));
  const formats::Container container = *formats::Container::Open(SharedBytes(nullptr, bytes));
  const Program program = *DecodeProgramWithoutWeights(container);
  CHECK(program.constants[0].bytes.size() == 8);
  CHECK(program.constants[0].bytes.data() !=
        container.StoredBytes(*container.Find(formats::SectionKind::kConstantData)).data());
  DoctorOptions options;
  options.machine_policy_path = "/nonexistent";
  options.shapes.symbols = {{"n", 1000}};
  options.available_memory_bytes = 3000;
  bool has_memory = false;
  for (const Finding& finding : Diagnose(container, program, options)) {
    CAPTURE(finding.what);
    if (finding.what == "memory of \"main\"") {
      has_memory = true;
      CHECK(finding.verdict == StatusCode::kOutOfMemory);
      CHECK(finding.needs == "0.0 MB at n=1000");
    } else {
      CHECK(finding.verdict == StatusCode::kOk);
    }
  }
  CHECK(has_memory);
  CHECK(AvailableMemoryBytes() > 0);
}

TEST_CASE("the doctor asks about trust what opening asks") {
  if (!formats::CanCheckSignatures()) {
    std::puts("SKIP: signatures, in a build without libsodium");
    return;
  }
  const std::vector<std::byte> plain = *EncodeProgram(*Assemble(kText));
  const formats::Container unsigned_one = *formats::Container::Open(SharedBytes(nullptr, plain));
  formats::ContainerWriter writer;
  for (const formats::Section& section : unsigned_one.sections()) {
    writer.AddStored(section, unsigned_one.StoredBytes(section));
  }
  const std::vector<std::byte> zeros(formats::kSignatureSectionBytes);
  REQUIRE(writer.Add(formats::SectionKind::kSignature, 0, {zeros}).ok());
  const std::vector<std::byte> bytes = *writer.ToBytes();
  const formats::Container container = *formats::Container::Open(SharedBytes(nullptr, bytes));
  DoctorOptions options;
  options.machine_policy_path = "/nonexistent";
  for (const Finding& finding : Diagnose(container, *DecodeProgramWithoutWeights(container), options)) {
    if (finding.what == "trust") CHECK(finding.verdict == StatusCode::kNotTrusted);
  }
}

}  // namespace
}  // namespace ingot::vm
