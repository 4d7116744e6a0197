// Lays out a packed program: launcher, padding, container.
#include "formats/packed_program.h"

#include <algorithm>

#include "formats/byte_reader.h"
#include "formats/container.h"
#include "formats/container_layout.h"
#include "formats/file.h"

namespace ingot::formats {

Status WritePackedProgram(std::span<const std::byte> launcher, const ContainerWriter& container,
                          const std::string& path, FileCalls& calls) {
  if (!AsText(launcher).starts_with("\x7f"
                                    "ELF")) {
    return Status(StatusCode::kBadInput, "the launcher is no ELF program");
  }
  const uint64_t start = AlignUp(launcher.size(), std::max(kPackedAlignment, container.Alignment()));
  INGOT_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path, calls));
  INGOT_RETURN_IF_ERROR(file.Write(launcher));
  INGOT_RETURN_IF_ERROR(file.WriteZeros(start - launcher.size()));
  INGOT_RETURN_IF_ERROR(container.WriteTo(file));
  INGOT_RETURN_IF_ERROR(file.MakeExecutable());
  return file.Commit();
}

}  // namespace ingot::formats
