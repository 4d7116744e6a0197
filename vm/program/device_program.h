// A file for two kinds of devices: its program is for the CPU, and one optional section holds a second container whose
// program, of the same functions, is for GPUs. A VM that runs on the CPU alone does not know the section and passes over
// it; one built with INGOT_CUDA opens it for the first context on a GPU (run/executable.h), which runs what is in it.
#pragma once

#include <optional>

#include "formats/device_program_section.h"
#include "vm/program/program.h"

namespace ingot::vm {

using formats::kDeviceProgramSection;
inline constexpr const char* kDeviceProgramName = "device_program";

// The container in the section; none: the file has no such section. It is stored raw, so that what is in it cannot
// decompress to more than what the file's own size allows; another codec is corrupt. The pool is as that of
// ContainerOptions.
Result<std::optional<formats::Container>> OpenDeviceProgram(const formats::Container& file, ThreadPool* pool = nullptr);

// Fails unless both export the same functions: names, symbols, parameters and results, but for the devices on which
// tensors are. Callers are told the signatures of `program`, and by them make room for what `for_gpu` gives.
Status CheckSameFunctions(const Program& program, const Program& for_gpu);

}  // namespace ingot::vm
