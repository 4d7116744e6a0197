// Functions that count in int32, made of those that count in int64.
#pragma once

#include "compiler/ir/expr.h"

namespace ingot::schedule::testing {

// The function with int32 dimensions, loops, iteration variables and indices. Its symbolic variable is called n.
ir::PrimFunc Narrowed(const ir::PrimFunc& function);

}  // namespace ingot::schedule::testing
