// Convolutions of floats as products of matrices by matrix instructions: both factors are copied first, so that
// the channels that are summed over lie next to each other and whole chunks of 16 bytes go to the tiles.
#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/rules/cuda_product.h"

namespace ingot::schedule {

struct CudaChannels {
  int iter = -1;                                     // of the channels, by its position in block.iter_vars
  std::optional<int64_t> batch, rows, columns, sum;  // of the matrices; nothing: symbolic
  DataType dtype = DataType::Float(32);              // of the factors
};
// A sum of products of elements that are float32, or cast to it, in which both factors have a dimension for the channels alone, a
// multiple of a chunk.
Match<CudaChannels> FindCudaChannels(const BlockSite& site);

// Makes a product of matrices [.., rows, sum] and [.., columns, sum] of the block, padded to whole multiples. Returns the
// block that writes the result out of the sums; where it makes loops for tiles, it has one each for batch, if there is one,
// rows and columns. The factors are written by blocks that read the copies, for the rule to put into what reads them.
BlockRV MakeChannelMatrices(Schedule& schedule, BlockRV product, const CudaChannels& channels,
                            const ProductMultiples& multiples, bool makes_loops, std::vector<BlockName>& handled);

}  // namespace ingot::schedule
