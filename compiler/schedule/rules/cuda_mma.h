// What a block that sums products of floats is for the rules that give it to matrix instructions: a product of
// matrices, of which each factor has k or its own side as its last axis.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "compiler/schedule/match.h"
#include "compiler/schedule/schedule.h"

namespace ingot::schedule {

// Whether there are matrix instructions for factors of it.
bool IsMmaDtype(const DataType& dtype);

// The positions of the iteration variables of rows (of the first factor), columns (of the second one) and the sum, and
// the factors' positions among the block's reads.
struct MmaProduct {
  int m = -1, n = -1, k = -1;
  int64_t a_read = -1, b_read = -1;
  DataType dtype = DataType::Float(32);  // of the factors
};

// The dimension of a factor whose index is the number of a panel, the quotient of the iteration variable, and the width of
// these panels; a width of 0: the factor lies in none.
struct MmaPanels {
  size_t dimension = 0;
  int64_t width = 0;
};
MmaPanels MmaPanelsOf(const ir::BufferRegion& factor, const ir::PrimVar& side);

// In float32, of float16, bfloat16 or float32. A factor may lie in panels. cuda_mma.cc
Match<MmaProduct> FindMmaProduct(const BlockSite& site);

// Pads rows, columns and k to multiples of these (pad_einsum); returns the blocks that copy factors and results.
std::set<BlockName> PadMmaProduct(Schedule& schedule, BlockRV product, const MmaProduct& axes,
                                  const std::array<int64_t, 3>& multiples);

// The loops around a block below `around` by the iteration variables of which they are (-1: none), and all others.
struct MmaLoops {
  std::vector<LoopRV> batch;
  LoopRV m, n, k;
};
MmaLoops MmaLoopsOf(Schedule& schedule, BlockRV block, LoopRV around, int m, int n, int k = -1);

// Of the loops of a copy from panels, whose rows have so many chunks of 16 bytes: eight threads that store at once have
// several rows of a panel, and those that lie as far apart as each has chunks have no bank of shared memory in common.
std::vector<LoopRV> SpreadPanelCopies(Schedule& schedule, std::vector<LoopRV> loops, int64_t chunks_of_row);

// What a thread does by itself: its loops are unrolled, the innermost one vectorized if that is asked for.
void UnrollOwnLoops(Schedule& schedule, const std::vector<LoopRV>& own, bool vectorizes);

}  // namespace ingot::schedule
