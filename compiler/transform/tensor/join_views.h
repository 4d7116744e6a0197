// An allocation and the views of its memory as one buffer; what holds before and after stands in join_views.cc.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::transform {

Result<ir::PrimFunc> JoinViews(const ir::PrimFunc& function, const Target& target);

}  // namespace ingot::transform
