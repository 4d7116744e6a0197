// Where tensors lie in one arena, by their sizes and the time that they are alive. In: sizes and live ranges. Out: an
// offset each, and the peak. Which tensors these are is plan_memory's business.
//
// Tensors are placed from the largest to the smallest, each at the lowest offset that is proved free of every tensor
// placed before it that lives at the same time (greedy by size: Pisarchyk and Lee, "Efficient Memory Management for
// Deep Neural Net Inference", 2020). Offsets are multiples of 64 bytes.
//
// Sizes of symbolic shapes are formulas. Where a linear one can be rounded up coefficient by coefficient at little cost
// (float32[n, 1000]: n * 4032), it stays linear, and sums of such sizes compare as linear forms do. Otherwise the whole
// is rounded up (float32[n]: (n + 15) // 16 * 64). While tensors are placed, each such size is a variable of its own,
// of which three things are known: it is at least the unrounded size, at most the one rounded by coefficients, and not
// above another one whose unrounded size is not below its own. The plan whose sizes are all rounded by coefficients is
// made, too, and taken when it is the better one.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/expr.h"

namespace ingot::lower {

// A tensor that is alive from binding `first` to binding `last`, both included.
struct PlannedTensor {
  ir::PrimExpr size_bytes;  // a multiple of 64 for every value of the symbols
  int64_t first = 0, last = 0;
  ir::PrimExpr unrounded_bytes = nullptr;  // where size_bytes is this, rounded up as a whole; null: it is not
};
struct Placement {
  std::vector<ir::PrimExpr> offsets;  // null: not placed, since no formula of the file could say where
  ir::PrimExpr peak;
};
Placement PlaceTensors(const std::vector<PlannedTensor>& tensors);

// The bytes of a tensor, and those rounded up to a multiple of 64 for every value of every symbol.
ir::PrimExpr SizeBytes(const std::vector<ir::PrimExpr>& dims, DataType dtype);
// The rounded ones are their upper bound where the attributes (of the function) bound the symbols.
ir::PrimExpr AlignedSizeBytes(const std::vector<ir::PrimExpr>& dims, DataType dtype, const ir::Attrs& attrs = {});
// As a tensor to be placed.
PlannedTensor MakePlanned(const std::vector<ir::PrimExpr>& dims, DataType dtype, const ir::Attrs& attrs, int64_t first,
                          int64_t last);

}  // namespace ingot::lower
