// Memory planning: the tensors that never leave a function get fixed places in one arena. Each
//     y: T = R.builtin.alloc_tensor(shape, dtype, device)
// whose tensor is not returned, put into a tuple or handed to a closure becomes
//     y: T = R.memory.alloc_tensor(storage, R.prim_value(offset), shape, dtype)
// over one `storage = R.memory.alloc_storage(R.shape([peak]), ...)` at the function's start.
//
// A kernel whose descriptor says that an output may lie in an input's memory writes it there, when that input is not
// used any more: instead of an allocation, the output's name is a second one of the input, `y: T = x`.
//
// Two tensors may share bytes when they are not alive at the same time; a view keeps its base alive. Where they lie is
// compiler/lower/place_tensors.h's business. Where every symbol has an upper bound, the largest size of a tensor stands
// for all and the plan is made of numbers, if its peak is 1 GiB at most; otherwise sizes are formulas, and what cannot
// be compared is not shared.
//
// Before: destination passing. After: every allocation left over is one whose tensor leaves the function.
#pragma once

#include "compiler/ir/module.h"
#include "compiler/lower/place_tensors.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::lower {

// The tensor whose elements a binding's value shows under other dims; null where it is no view of a variable.
const ir::VarNode* ViewedVar(const ir::Expr& value);

Result<ir::IRModule> PlanMemory(ir::IRModule module, transform::PassContext& context);

}  // namespace ingot::lower
