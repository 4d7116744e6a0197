// Packed programs: a launcher (an ELF program) with a container behind it, which is one file that runs and still opens
// as an executable everywhere. Nothing is linked: the launcher's bytes are copied.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "formats/container_writer.h"
#include "formats/file.h"
#include "runtime/status.h"

namespace ingot::formats {

// Writes launcher, zeros up to a page boundary (and the container's own alignment), container; the file may be
// executed. A launcher that is no ELF file is bad input.
Status WritePackedProgram(std::span<const std::byte> launcher, const ContainerWriter& container,
                          const std::string& path, FileCalls& calls = FileCalls::System());

}  // namespace ingot::formats
