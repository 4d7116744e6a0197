// A file for two kinds of devices: its program is for the CPU, and one optional section holds a second container whose
// program, of the same functions, is for GPUs. A VM that runs on the CPU alone does not know the section and passes over
// it; one built with INGOT_CUDA opens it (run/executable.h), and contexts for a GPU run what is in it.
#pragma once

#include "formats/container.h"

namespace ingot::vm {

// Numbered as those of formats/section_kinds.def, which leaves it out: that would be a row for readers without use of it.
inline constexpr formats::SectionKind kDeviceProgramSection{49};
inline constexpr const char* kDeviceProgramName = "device_program";

}  // namespace ingot::vm
