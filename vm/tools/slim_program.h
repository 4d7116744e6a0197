// Makes existing executables smaller: without the kernels that a CPU would not choose, without the debug map. In:
// a verified program and the container that it came from; out: a file of the same kind (a packed program stays one).
#pragma once

#include <optional>
#include <string>

#include "formats/container.h"
#include "formats/file.h"
#include "runtime/cpu_features.h"
#include "vm/program/program.h"

namespace ingot::vm {

struct SlimOptions {
  std::optional<CpuFeatures> only_for;  // keep only what a CPU of these features runs
  bool drop_debug_map = false;
};

// Every kernel keeps the one variant that a linker on such a CPU chooses; images that no kernel names any more are
// removed. Kernels of other devices keep all variants. Fails with unsupported_file when such a CPU cannot run a kernel.
Result<Program> ThinProgram(Program program, CpuFeatures features);

// Writes the program with what else is in its file: the launcher before the container, and sections that are not made
// from the program. Signatures are dropped, since they cover every section. `file` is the whole file that the container
// was opened from.
Status WriteSlimProgram(const formats::Container& container, std::span<const std::byte> file, Program program,
                        const SlimOptions& options, const std::string& path,
                        formats::FileCalls& calls = formats::FileCalls::System());

}  // namespace ingot::vm
