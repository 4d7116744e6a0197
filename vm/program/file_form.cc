// Takes from a container what a Program does not hold, and writes a container of both. Compressed sections of the
// program's own are compared with its encoding before they are written.
#include "vm/program/file_form.h"

#include <algorithm>

#include "formats/container_writer.h"
#include "formats/packed_program.h"
#include "vm/program/program_codec.h"

namespace ingot::vm {
namespace {

using formats::Container;
using formats::Section;

// Whether the concatenation of the pieces equals the bytes.
bool IsConcatenation(std::span<const std::span<const std::byte>> pieces, std::span<const std::byte> bytes) {
  for (const std::span<const std::byte> piece : pieces) {
    if (piece.size() > bytes.size() || !std::ranges::equal(piece, bytes.first(piece.size()))) return false;
    bytes = bytes.subspan(piece.size());
  }
  return bytes.empty();
}

// The form's sections in a container of their own: opening it makes every check of them.
Result<Container> OpenAlone(const FileForm& form) {
  formats::ContainerWriter alone;
  for (const StoredSection& part : form.sections) alone.AddStored(part.section, part.stored.bytes);
  INGOT_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, alone.ToBytes());
  Result<Container> opened = Container::Open(SharedBytes::Own(std::move(bytes)));
  if (!opened.ok()) return Status(StatusCode::kBadInput, opened.status().message());
  return opened;
}

// Fails unless those of the form's sections that are made from the program hold what the program's encoding holds.
Status CheckOwnSections(const formats::ContainerWriter& encoded, const FileForm& form) {
  INGOT_ASSIGN_OR_RETURN(const Container alone, OpenAlone(form));
  for (const Section& stored : alone.sections()) {
    if (!IsOfTheProgram(stored.kind)) continue;
    INGOT_ASSIGN_OR_RETURN(const SharedBytes content, alone.Read(stored));
    bool is_same = false;
    encoded.ForEachSection([&](const Section& section, std::span<const std::span<const std::byte>> pieces) {
      if (section.kind == stored.kind && section.index == stored.index)
        is_same = IsConcatenation(pieces, content.bytes);
    });
    if (is_same) continue;
    return Status(StatusCode::kBadInput, "section " + stored.Label() +
                                             " is not the program's any more: leave it out, and it is stored as it is");
  }
  return Status();
}

}  // namespace

bool IsOfTheProgram(formats::SectionKind kind) {
  using formats::SectionKind;
  switch (kind) {
    case SectionKind::kMetadata:
    case SectionKind::kStrings:
    case SectionKind::kSignatures:
    case SectionKind::kFunctions:
    case SectionKind::kKernels:
    case SectionKind::kMemoryPlans:
    case SectionKind::kConstants:
    case SectionKind::kDebugMap:
    case SectionKind::kWeights:
    case SectionKind::kKernelImage:
    case SectionKind::kConstantData:
      return true;
    case SectionKind::kGoldenCases:
    case SectionKind::kSignature:
      return false;
  }
  return false;  // a kind of a later version
}

FileForm FormOf(const Container& container, const SharedBytes& file) {
  FileForm form;
  form.debug_map = container.Find(formats::SectionKind::kDebugMap) != nullptr;
  for (const Section& section : container.sections()) {
    if (IsOfTheProgram(section.kind) && section.codec == formats::Codec::kNone) continue;
    form.sections.push_back({section, {container.bytes().owner, container.StoredBytes(section)}});
  }
  form.launcher = {file.owner, file.bytes.first(container.start_offset())};
  return form;
}

Status WriteInForm(const Program& program, const FileForm& form, const std::string& path, formats::FileCalls& calls) {
  EncodeOptions options;
  options.debug_map = form.debug_map;
  INGOT_ASSIGN_OR_RETURN(EncodedProgram encoded, EncodedProgram::Encode(program, options));
  INGOT_RETURN_IF_ERROR(CheckOwnSections(encoded.container(), form));
  for (const StoredSection& part : form.sections) {
    if (IsOfTheProgram(part.section.kind)) {
      encoded.container().Replace(part.section, part.stored.bytes);
    } else {
      encoded.container().AddStored(part.section, part.stored.bytes);
    }
  }
  if (form.launcher.size() == 0) return encoded.container().WriteFile(path, calls);
  return formats::WritePackedProgram(form.launcher.bytes, encoded.container(), path, calls);
}

}  // namespace ingot::vm
