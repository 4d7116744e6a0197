// Modules as text, brought to where golden texts of memory planning and of bytecode look at them.
#pragma once

#include <string>
#include <string_view>

#include "compiler/ir/module.h"
#include "runtime/status.h"

namespace ingot::memory::testing {

// Returns the module of this text with types, after the memory passes up to the named one.
Result<ir::IRModule> ModuleAfter(std::string_view last_pass, const std::string& text);

}  // namespace ingot::memory::testing
