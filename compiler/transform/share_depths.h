// share_depths: tensor functions that differ in the length of a sum alone become one (share_depths.cc says which).
#pragma once

#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::transform {

Result<ir::IRModule> ShareDepths(ir::IRModule module, PassContext& context);

}  // namespace ingot::transform
