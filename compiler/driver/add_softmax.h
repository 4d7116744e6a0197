// --softmax: an output of scores becomes one of probabilities.
#pragma once

#include <string>

#include "compiler/ir/module.h"
#include "runtime/status.h"

namespace ingot::driver {

// Returns the module with the named result of "main" put through softmax along its last axis; the result keeps its
// name. The module must be normalised; the returned one must be normalised again, since calls may nest in it. kNotFound
// if no result has this name.
Result<ir::IRModule> AddSoftmax(ir::IRModule module, const std::string& output);

}  // namespace ingot::driver
