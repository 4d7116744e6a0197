// What a block that sums products of two elements is as a product of matrices: which of its iterations are the rows, the
// columns, the sum, and the batch. Matrix products and convolutions of any number of axes are such blocks; so are their
// groups, where a factor moves with the quotient of an iteration alone.
#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/match.h"
#include "compiler/schedule/schedule.h"

namespace ingot::schedule {

// An iteration variable by its position in block.iter_vars, or a part of it: part d is its quotient by d, -d its
// remainder, as fuse_einsum takes them.
struct ProductAxis {
  int iter = -1;
  int64_t part = 0;
};

struct CudaProduct {
  // Outer axes first. Rows are what the first factor alone moves along, columns what the second one does, and the
  // innermost axis of the result that one of them has is a column. The batch is what both have.
  std::vector<ProductAxis> batch, sum, rows, columns;
  // The factors of rows and of columns, among the loads in the order of the block's expression.
  int row_factor = 0, column_factor = 1;
  std::vector<int> iter_of_dimension;  // of the result; -1: a dimension of one place
};

// Declines blocks that are no sum of products of two elements, or have no columns or nothing to sum over. A product with a
// vector has no rows.
Match<CudaProduct> FindCudaProduct(const BlockSite& site);
// How many values the axes have together; nothing where that is not a number.
std::optional<int64_t> CountValues(const BlockSite& site, const std::vector<ProductAxis>& axes);

// Steps of scheduling a product. FuseProduct makes one axis each of the batch, the sum, the rows and the columns, in this
// order (fuse_einsum), of whole multiples; it returns the block that writes the result: the last consumer, if there is
// one. FuseResult makes one axis each of the batch, the rows and the columns of that block.
struct ProductMultiples {
  int64_t sum, rows, columns;
};
BlockRV FuseProduct(Schedule& schedule, BlockRV product, const CudaProduct& axes, const ProductMultiples& multiples,
                    BlockRV last);
void FuseResult(Schedule& schedule, BlockRV out, const CudaProduct& axes);

// Gives parts of the sum, one for each iteration of the loop, to different blocks of threads. `product` becomes the block
// that sums a part; the sum of the parts and its consumers, of which `out` is the last one, have a thread for each element,
// so many in a block. Returns the block that writes the parts.
BlockRV SplitProductSum(Schedule& schedule, BlockRV& product, LoopRV part, BlockRV out, int64_t threads);

// Binds the loops over tiles of a result to blocks of threads. They are numbered along one axis where that takes constant
// divisors alone. Else batch, rows and columns have an axis each: blockIdx.x is of the first whose extent is not known to
// be at most 65535; that the others have at most as many is checked at the launch.
void BindTiles(Schedule& schedule, const std::vector<LoopRV>& batch, LoopRV rows, LoopRV columns);

// Lets a block read elements where they come from: stages that only move them, such as padding, and that nobody else
// reads, go into it.
void InlineMoves(Schedule& schedule, BlockRV block);

}  // namespace ingot::schedule
