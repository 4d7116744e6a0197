// Removes kernel variants and unused images from a program, and writes it with the other sections of its file.
#include "vm/tools/slim_program.h"

#include "formats/packed_program.h"
#include "vm/program/file_form.h"
#include "vm/program/program_codec.h"

namespace ingot::vm {
namespace {

EncodeOptions SameEncoding(const formats::Container& container, bool drop_debug_map) {
  EncodeOptions encoding;
  const formats::Section* constants = container.Find(formats::SectionKind::kConstantData);
  if (constants != nullptr) encoding.constants_codec = constants->codec;
  encoding.debug_map = !drop_debug_map && container.Find(formats::SectionKind::kDebugMap) != nullptr;
  return encoding;
}

}  // namespace

Result<Program> ThinProgram(Program program, CpuFeatures features) {
  std::vector<bool> is_used(program.images.size(), false);
  for (Kernel& kernel : program.kernels) {
    if (program.devices[kernel.device].kind == "cpu" && !kernel.variants.empty()) {
      const KernelVariant* chosen = nullptr;
      for (const KernelVariant& variant : kernel.variants) {
        if (chosen == nullptr && features.Covers(CpuFeatures{variant.required_features})) chosen = &variant;
      }
      if (chosen == nullptr) {
        return Status(StatusCode::kUnsupportedFile,
                      "kernel \"" + kernel.name + "\" has no variant for a CPU with " + features.ToString());
      }
      kernel.variants = {KernelVariant(*chosen)};
    }
    for (const KernelVariant& variant : kernel.variants) is_used[variant.image] = true;
  }
  std::vector<uint32_t> renumbered(program.images.size());
  std::vector<KernelImage> images;
  for (size_t i = 0; i < program.images.size(); ++i) {
    renumbered[i] = static_cast<uint32_t>(images.size());
    if (is_used[i]) images.push_back(std::move(program.images[i]));
  }
  program.images = std::move(images);
  for (Kernel& kernel : program.kernels) {
    for (KernelVariant& variant : kernel.variants) variant.image = renumbered[variant.image];
  }
  return program;
}

Status WriteSlimProgram(const formats::Container& container, std::span<const std::byte> file, Program program,
                        const SlimOptions& options, const std::string& path, formats::FileCalls& calls) {
  if (options.only_for) {
    INGOT_ASSIGN_OR_RETURN(program, ThinProgram(std::move(program), *options.only_for));
  }
  INGOT_ASSIGN_OR_RETURN(EncodedProgram encoded,
                         EncodedProgram::Encode(program, SameEncoding(container, options.drop_debug_map)));
  std::vector<SharedBytes> kept;  // until the file is written
  for (const formats::Section& section : container.sections()) {
    if (IsOfTheProgram(section.kind) || section.kind == formats::SectionKind::kSignature) continue;
    formats::ContainerWriter::Options as_it_was;
    as_it_was.is_required = section.is_required;
    as_it_was.alignment = uint64_t{1} << section.alignment_log2;
    as_it_was.codec = section.codec;
    as_it_was.name = section.name;
    INGOT_ASSIGN_OR_RETURN(kept.emplace_back(), container.Read(section));
    INGOT_RETURN_IF_ERROR(encoded.container().Add(section.kind, section.index, {kept.back().bytes}, as_it_was));
  }
  if (container.start_offset() == 0) return encoded.container().WriteFile(path, calls);
  return formats::WritePackedProgram(file.first(container.start_offset()), encoded.container(), path, calls);
}

}  // namespace ingot::vm
