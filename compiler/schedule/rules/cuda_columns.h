// Steps of scheduling reductions of columns on CUDA, for one launch (cuda_columns.cc) and for all stages of a function in one
// (cuda_strips.cc).
#pragma once

#include <vector>

#include "compiler/schedule/match.h"
#include "compiler/schedule/schedule.h"

namespace ingot::schedule {

// Rows that a thread reads at once (more of them, up to twice as many, where that leaves no rest).
constexpr int64_t kColumnRowsAtOnce = 4;

// A reduction's axes, and a block's tile: `lanes` columns of a thread, threads side by side, rows of threads.
struct CudaColumns {
  std::vector<std::vector<int>> kept;  // runs of the result's axes; the last one is the columns
  std::vector<int> reduced;
  int64_t lanes = 1, across = 1, rows_of_threads = 1;
  int64_t segments = 1;  // of the rows, each with a launch's blocks of its own
  // Rows that a thread reads at once where nothing is known of how many it has.
  int64_t unknown_at_once = kColumnRowsAtOnce;

  int64_t tile() const { return across * lanes; }
  int64_t threads() const { return across * rows_of_threads; }
};
// Declines reductions whose columns do not lie side by side, or that reduce a few rows.
Match<CudaColumns> FindCudaColumns(const BlockSite& site);
// The values of the variables together; a symbol counts as `unknown`.
int64_t CountOfIters(const BlockSite& site, const std::vector<int>& iters, int64_t unknown);

// Positions of iteration variables, group after group, for fuse_iters.
struct IterGroups {
  std::vector<int64_t> iters, sizes;
  void Add(const std::vector<int>& group);
  void Fuse(Schedule& schedule, BlockRV block) const;
};
// What the block writes gets one dimension for each of these groups of dimensions.
void JoinDimensions(Schedule& schedule, BlockRV block, const std::vector<std::vector<int64_t>>& groups);

// The stages of a reduction whose last loop is the rows: what each row of threads gives, in registers and then in shared
// memory, and what groups of these give, where they are many.
struct ColumnShares {
  BlockRV total, share, shared, group;
  bool has_groups = false;
};
ColumnShares MakeShares(Schedule& schedule, BlockRV total, const CudaColumns& columns, std::vector<BlockName>& handled);
// Puts all but the total at the loop over blocks of threads.
void PlaceShares(Schedule& schedule, const ColumnShares& shares, LoopRV block);
// Binds what PlaceShares placed, and the total's loops over columns in rounds: those around `element`, or below the block.
void BindShares(Schedule& schedule, const ColumnShares& shares, LoopRV block, LoopRV element,
                const CudaColumns& columns, std::vector<BlockName>& handled);
// Spreads a loop over the threads of a block, in rounds.
void BindInRounds(Schedule& schedule, LoopRV loop, int64_t threads);

}  // namespace ingot::schedule
