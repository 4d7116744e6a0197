// Memory planning: the tensors that never leave a function get fixed places in one arena. Each
//     y: T = R.builtin.alloc_tensor(shape, dtype, device)
// whose tensor is not returned, put into a tuple or handed to a closure becomes
//     y: T = R.memory.alloc_tensor(storage, R.prim_value(offset), shape, dtype)
// over one `storage = R.memory.alloc_storage(R.shape([peak]), ...)` at the function's start.
//
// A kernel whose descriptor says that an output may lie in an input's memory writes it there, when that input is not used
// any more: instead of an allocation, the output's name is a second one of the input, `y: T = x`.
//
// Two tensors may share bytes when they are not alive at the same time; a view keeps its base alive. Tensors are placed
// from the largest to the smallest, each at the lowest offset that is proved free of every tensor placed before it that
// lives at the same time (greedy by size: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference", 2020). Offsets are multiples of 64 bytes. Sizes of symbolic shapes: where every symbol has an upper bound, the
// largest size stands for all and the plan is made of numbers, if its peak is 1 GiB at most; otherwise sizes are
// formulas, of which each coefficient of a linear one is rounded up, so that sums stay linear; what cannot be compared
// is not shared.
//
// Before: destination passing. After: every allocation left over is one whose tensor leaves the function.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"

namespace ingot::lower {

// The tensor whose elements a binding's value shows under other dims; null where it is no view of a variable.
const ir::VarNode* ViewedVar(const ir::Expr& value);

Result<ir::IRModule> PlanMemory(ir::IRModule module, transform::PassContext& context);

// The placement alone: tensors with sizes (multiples of 64 for every value of the symbols) that are alive from binding
// `first` to binding `last`, both included. Gives an offset per tensor and the peak.
struct PlannedTensor {
  ir::PrimExpr size_bytes;
  int64_t first = 0, last = 0;
};
struct Placement {
  std::vector<ir::PrimExpr> offsets;  // null: not placed, since no formula of the file could say where
  ir::PrimExpr peak;
};
Placement PlaceTensors(const std::vector<PlannedTensor>& tensors);

// The bytes of a tensor, rounded up so that every multiple of every symbol's value keeps 64-byte alignment; its upper
// bound where the attributes (of the function) bound the symbols.
ir::PrimExpr AlignedSizeBytes(const std::vector<ir::PrimExpr>& dims, DataType dtype, const ir::Attrs& attrs = {});

}  // namespace ingot::lower
