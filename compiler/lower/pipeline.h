// The passes between the graph pipeline and bytecode, as a table in the same form: from values to buffers.
#pragma once

#include <span>

#include "compiler/transform/pass.h"

namespace ingot::lower {

std::span<const transform::Pass> LoweringPipeline();

}  // namespace ingot::lower
