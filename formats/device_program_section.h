// The kind of a section that most readers pass over: a second container in this one (vm/program/device_program.h). It is not
// in section_kinds.def, which would be a row for all of them.
#pragma once

#include "formats/container.h"

namespace ingot::formats {

inline constexpr SectionKind kDeviceProgramSection{49};

}  // namespace ingot::formats
