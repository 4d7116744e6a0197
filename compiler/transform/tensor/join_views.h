// Makes an allocation and the views of its memory one buffer; join_views.cc says what holds before and after.
#pragma once

#include "compiler/ir/expr.h"
#include "compiler/target/target.h"
#include "runtime/status.h"

namespace ingot::transform {

Result<ir::PrimFunc> JoinViews(const ir::PrimFunc& function, const Target& target);

}  // namespace ingot::transform
