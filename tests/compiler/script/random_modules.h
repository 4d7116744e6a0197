// Modules at random: graph functions and tensor functions that verify and hold every kind of node, name and attribute,
// whether or not they compute anything of use. The same seed gives the same module.
#pragma once

#include <cstdint>

#include "compiler/ir/module.h"

namespace ingot::script::testing {

ir::IRModule RandomModule(uint64_t seed);

}  // namespace ingot::script::testing
