// AssembleCubin: NVIDIA's assembler, ptxas, makes machine code of PTX, so that no driver has to when a file is loaded.
#pragma once

#include <string>

#include "runtime/status.h"

namespace ingot::codegen {

// `ptxas` is a path, or a name that PATH has; `architecture` is such as "sm_90". The assembler reads and writes files of
// a folder for this call alone. Fails with not_found where it cannot be started, and with what it printed where it fails.
Result<std::string> AssembleCubin(const std::string& ptx, const std::string& architecture, const std::string& ptxas);

}  // namespace ingot::codegen
