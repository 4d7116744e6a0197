// Memory planning: the tensors that never leave a function get fixed places in one arena. Each
//     y: T = R.builtin.alloc_tensor(shape, dtype, device)
// whose tensor is not returned, put into a tuple or handed to a closure becomes
//     y: T = R.memory.alloc_tensor(storage, R.prim_value(offset), shape, dtype)
// over one `storage = R.memory.alloc_storage(R.shape([peak]), ...)` at the function's start.
//
// A kernel whose descriptor says that an output may lie in an input's memory writes it there when that input is not
// used afterwards: instead of an allocation, the output is a second name of the input, `y: T = x`.
//
// Two tensors may share bytes when they are not alive at the same time; a view keeps its base alive. place_tensors.h
// decides where they lie. If every symbol has an upper bound, each tensor gets its largest size and the plan is made of
// numbers, provided that its peak is at most 1 GiB; otherwise sizes are formulas, and tensors whose sizes cannot be
// compared share nothing.
//
// Before: destination passing. After: every allocation left over is of a tensor that leaves the function, or of a size
// that is not known when the function is called.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/memory/place_tensors.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::memory {

// Returns the variable whose tensor a binding's value shows under other dims; null if the value is no view of a
// variable.
const ir::VarNode* ViewedVar(const ir::Expr& value);

Result<ir::IRModule> PlanMemory(ir::IRModule module, transform::PassContext& context);

}  // namespace ingot::memory
