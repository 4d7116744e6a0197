// --softmax: an output of scores becomes one of probabilities.
#pragma once

#include <string>

#include "compiler/ir/module.h"
#include "runtime/status.h"

namespace ingot::driver {

// The module with the named result of "main" put through softmax along its last axis; its name stays. In: a normalised
// module. Out: calls may nest, so it is to be normalised again.
Result<ir::IRModule> AddSoftmax(ir::IRModule module, const std::string& output);

}  // namespace ingot::driver
