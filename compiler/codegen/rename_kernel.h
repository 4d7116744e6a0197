// RenameKernel: the name of a kernel's one global symbol, written into its object. Objects are compiled under one name,
// so that equal kernels give equal objects; an image needs a name for each. Private to code generation.
#pragma once

#include <string>
#include <string_view>

#include "runtime/status.h"

namespace ingot::codegen {

// What every kernel is called in its object.
inline constexpr const char* kKernelSymbol = "kernel";

// Returns the ELF object with its global symbol kKernelSymbol renamed. Other symbols of a kernel's object are local,
// and keep their names. Fails with kCorrupt if the object does not define that symbol once.
Result<std::string> RenameKernel(std::string_view object, std::string_view name);

}  // namespace ingot::codegen
