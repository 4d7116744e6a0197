// Reads the text of a PTX module. What it does not know is an error with its line, never skipped, except debug
// information and performance hints.
#pragma once

#include <string_view>

#include "runtime/status.h"
#include "tests/cuda_standin/ptx_module.h"

namespace ingot::ptx {

Result<Module> ParsePtx(std::string_view text);

}  // namespace ingot::ptx
