// The verifier of the tensor level. It holds before and after every pass; a message names the statement and what is
// wrong.
#pragma once

#include "compiler/ir/module.h"
#include "runtime/status.h"

namespace ingot::ir {

// Scopes of variables and buffers, dtypes of operands, rank of accesses, block bindings, nesting.
Status VerifyPrimFunc(const PrimFunc& function);

}  // namespace ingot::ir
