// Checks that every test makes of its modules and tensor functions: their text reads back structurally equal, and
// prints the same again.
#pragma once

#include <string>

#include "compiler/ir/module.h"
#include "compiler/script/printer.h"

namespace ingot::script::testing {

// Empty when the text reads back; else the difference, and the text.
std::string ReadBackDifference(const ir::IRModule& module, const PrintOptions& options = {});
std::string ReadBackDifference(const ir::PrimFunc& function);

}  // namespace ingot::script::testing
