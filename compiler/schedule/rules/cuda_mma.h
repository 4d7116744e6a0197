// What a block that sums products of 16-bit floats is for the rules that give it to matrix instructions: a product of
// matrices, of which each factor has k or its own side as its last axis.
#pragma once

#include <cstdint>

#include "compiler/schedule/match.h"
#include "compiler/schedule/state.h"

namespace ingot::schedule {

// The positions of the iteration variables of rows (of the first factor), columns (of the second one) and the sum, and
// the factors' positions among the block's reads.
struct MmaProduct {
  int m = -1, n = -1, k = -1;
  int64_t a_read = -1, b_read = -1;
};

// In float32, of float16 or bfloat16. A factor may lie in panels. cuda_mma.cc
Match<MmaProduct> FindMmaProduct(const BlockSite& site);

}  // namespace ingot::schedule
