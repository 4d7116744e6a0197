// The program for GPUs that a file may have besides its own (vm/program/device_program.h), for vm-inspect.
#pragma once

#include <string>
#include <vector>

#include "formats/container.h"
#include "vm/program/program.h"
#include "vm/program/weights.h"

namespace ingot::vm {

// Opens, decodes and verifies it, with every hash of its container and the files of its weights, and compares its
// functions with those of the file's own program. A file without one passes.
Status VerifySecondProgram(const formats::Container& file, const Program& program, const WeightSources& sources);

// The differences between those of two files, as DiffPrograms gives them, after the section's name. Where they cannot be
// decoded, whether their bytes differ.
std::vector<std::string> DiffSecondPrograms(const formats::Container& a, const formats::Container& b);

}  // namespace ingot::vm
