// Describes the differences between two programs, for vm-inspect --diff. In: decoded programs, verified or not; out: a
// line for each difference, in the order of a program's tables; none when both would encode to the same sections.
#pragma once

#include <string>
#include <vector>

#include "vm/program/program.h"

namespace ingot::vm {

std::vector<std::string> DiffPrograms(const Program& a, const Program& b);

}  // namespace ingot::vm
