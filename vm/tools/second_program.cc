// What the tools do with a file's own program, for the second one.
#include "vm/tools/second_program.h"

#include <algorithm>

#include "runtime/text.h"
#include "vm/program/device_program.h"
#include "vm/program/program_codec.h"
#include "vm/tools/program_diff.h"
#include "vm/verify/verifier.h"

namespace ingot::vm {

Status VerifySecondProgram(const formats::Container& file, const Program& program, const WeightSources& sources) {
  INGOT_ASSIGN_OR_RETURN(const std::optional<formats::Container> container, OpenDeviceProgram(file));
  if (!container) return Status();
  const auto verified = [&]() -> Result<Program> {
    INGOT_RETURN_IF_ERROR(container->VerifyHashes());
    INGOT_ASSIGN_OR_RETURN(Program second, DecodeProgram(*container));
    INGOT_RETURN_IF_ERROR(Verify(second, *container));
    INGOT_RETURN_IF_ERROR(BindWeights(second, sources));
    return second;
  };
  Result<Program> second = verified();
  if (!second.ok()) return std::move(second).status().WithContext(kDeviceProgramName);
  return CheckSameFunctions(program, *second);
}

std::vector<std::string> DiffSecondPrograms(const formats::Container& a, const formats::Container& b) {
  const formats::Section* const section_a = a.Find(kDeviceProgramSection);
  const formats::Section* const section_b = b.Find(kDeviceProgramSection);
  const std::string begin = StrCat({kDeviceProgramName, ": "});
  if (section_a == nullptr && section_b == nullptr) return {};
  if (section_a == nullptr || section_b == nullptr) {
    return {begin + (section_a == nullptr ? "only in the second file" : "only in the first file")};
  }
  if (std::ranges::equal(a.StoredBytes(*section_a), b.StoredBytes(*section_b))) return {};
  const auto decode = [](const formats::Container& file) -> Result<Program> {
    INGOT_ASSIGN_OR_RETURN(const std::optional<formats::Container> container, OpenDeviceProgram(file));
    return DecodeProgram(*container);
  };
  const Result<Program> program_a = decode(a), program_b = decode(b);
  std::vector<std::string> lines;
  if (program_a.ok() && program_b.ok()) lines = DiffPrograms(*program_a, *program_b);
  if (lines.empty()) return {begin + "the bytes differ"};
  for (std::string& line : lines) line.insert(0, begin);
  return lines;
}

}  // namespace ingot::vm
