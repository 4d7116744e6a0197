// Where tensors lie in one arena, by their sizes and live ranges. In: sizes and live ranges. Out: an offset for each,
// and the peak. plan_memory.h decides which tensors are placed.
//
// Tensors are placed from the largest to the smallest, each at the lowest offset that is proved free of every tensor
// placed before it that lives at the same time (greedy by size: Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020). Offsets are multiples of 64 bytes.
//
// Sizes of symbolic shapes are formulas. A linear one whose coefficients can be rounded up one by one at little cost
// (float32[n, 1000]: n * 4032) stays linear, and sums of such sizes compare as linear forms do. Any other is rounded up
// as a whole (float32[n]: (n + 15) // 16 * 64). During placement each size of the second kind is a variable of its own,
// of which three things are known: it is at least the unrounded size, at most the size rounded by coefficients, and at
// most another such size if its unrounded size is at most the other's. A second plan, with all sizes rounded by
// coefficients, is made too, and taken when it is better.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::memory {

// A tensor that is alive from binding `first` to binding `last`, both included.
struct PlannedTensor {
  ir::PrimExpr size_bytes;  // a multiple of 64 for every value of the symbols
  int64_t first = 0, last = 0;
  ir::PrimExpr unrounded_bytes = nullptr;  // what size_bytes rounds up as a whole; null: not so rounded
};
struct Placement {
  std::vector<ir::PrimExpr> offsets;  // null: not placed, since no formula of the file could give the offset
  ir::PrimExpr peak;
};
Placement PlaceTensors(const std::vector<PlannedTensor>& tensors);

// The size of a tensor in bytes, and below the same rounded up to a multiple of 64 for every value of every symbol.
ir::PrimExpr SizeBytes(const std::vector<ir::PrimExpr>& dims, DataType dtype);
// If attrs (the function's) bound the symbols, the rounded size is the constant upper bound.
ir::PrimExpr AlignedSizeBytes(const std::vector<ir::PrimExpr>& dims, DataType dtype, const ir::Attrs& attrs = {});
// Returns the tensor as one to be placed, alive from binding `first` to binding `last`.
PlannedTensor MakePlanned(const std::vector<ir::PrimExpr>& dims, DataType dtype, const ir::Attrs& attrs, int64_t first,
                          int64_t last);

}  // namespace ingot::memory
