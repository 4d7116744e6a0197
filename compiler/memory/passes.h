// The passes from values to buffers. The driver runs them behind the graph passes, whichever of those the user chose.
#pragma once

#include <span>

#include "compiler/transform/pass.h"

namespace ingot::memory {

std::span<const transform::Pass> MemoryPasses();

}  // namespace ingot::memory
