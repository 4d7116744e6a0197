// Facts about a block for rules: which kind of computation it is, how its loads move with an iteration variable, and
// what it costs. Also steps of scheduling that several rules share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/schedule/match.h"
#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace ingot::schedule {

// Whether the block is one store that writes each element once, at the spatial variables as indices, from elements at
// computable places; no reduction.
Match<> AsInjective(const ScheduleState& state, const BlockSite& site);
bool IsInjective(const ScheduleState& state, const BlockSite& site);
// Whether the block is one store that combines into the element at the spatial variables, with an initialisation.
Match<> AsReduction(const ScheduleState& state, const BlockSite& site);
bool IsReduction(const ScheduleState& state, const BlockSite& site);
// Whether the store's value is one load, perhaps cast, so that inlining it anywhere costs nothing.
bool IsPlainMove(const BlockSite& site);
// Whether the block reads its inputs under conditions, as padding does.
bool ReadsUnderCondition(const BlockSite& site);
// Whether the block writes a parameter of the function.
bool WritesOutput(const ScheduleState& state, const BlockSite& site);

// Whether a loop around the block is bound to threads, and whether the loop's iterations are different elements of the
// block's result.
bool IsBoundToThreads(const BlockSite& site);
bool IsSpatialLoop(const BlockSite& site, const For& loop);

const ir::BufferStoreNode& StoreOf(const BlockSite& site);

// How a load uses the iteration variables, by their positions in block.iter_vars.
struct LoadUse {
  const ir::BufferLoadNode* load;
  std::vector<bool> uses;  // per iteration variable: some index depends on it
  // Per iteration variable: the last index's coefficient, 0 where it does not appear there; absent when not linear.
  std::vector<std::optional<int64_t>> last_coefficient;
  std::vector<bool> outside_last;  // some index but the last depends on it
};
std::vector<LoadUse> LoadsOf(const BlockSite& site);

// The iteration variable that is exactly the store's index in dimension d, or -1.
int IterOfDimension(const BlockSite& site, size_t d);
std::vector<int> SpatialIters(const BlockSite& site);
std::vector<int> ReduceIters(const BlockSite& site);
std::optional<int64_t> ConstantExtent(const ir::IterVarNode& iter);

// The spatial variables with which a reduction's windows move by less than their length: an index of some load depends on
// one of them and on what is reduced.
struct WindowAxis {
  int iter, reduced;
};
std::vector<WindowAxis> WindowAxes(const BlockSite& site);

// The number of leading dimensions that the results of all stages share.
int SharedDimensions(const std::vector<BlockSite>& sites);

// Elementary operations of one instance of the block (a multiply-add is one, exp and the like are ten).
int64_t CostOfInstance(const BlockSite& site);
// The number of instances, with symbolic extents counted as 1.
int64_t KnownInstances(const BlockSite& site);

// Thresholds in elementary operations. A fork-join costs a few microseconds; vector code does some 25 of them in a
// nanosecond at best and about one at worst.
inline constexpr int64_t kMinParallelCost = 256 << 10;  // of a whole nest; below, it stays serial
inline constexpr int64_t kMinTaskCost = 64 << 10;
inline constexpr int64_t kLikelyExtent = 56;  // of a loop whose extent is a symbol
inline constexpr int64_t kLikelyDepth = 8;    // of a volume whose depth is a symbol

// Of an element in memory.
inline int64_t BytesOf(DataType dtype) { return std::max<int64_t>((dtype.bits + 7) / 8, 1); }

// Runs the loop in parallel, in chunks so that a task costs kMinTaskCost at least, when all iterations are worth it. A
// symbolic number of iterations counts as many. `cost_of_iteration` counts symbolic loops inside as one iteration: where
// there are some, the pass chunk_tasks makes chunks at run time; each counts as kLikelyExtent where an iteration keeps
// intermediate results, whose memory is made for the iterations of this loop. ParallelizeByLikelyCost is told what an
// iteration costs, symbolic loops included.
void ParallelizeByCost(Schedule& schedule, LoopRV loop, int64_t cost_of_iteration);
void ParallelizeByLikelyCost(Schedule& schedule, LoopRV loop, int64_t cost_of_iteration);

// Vectorizes a loop, which must be the innermost around one block. VectorizeTile is for tiles of constant extent:
// several whole vectors of `lanes` are unrolled, an extent of at most two vectors becomes one vector (of an odd length,
// perhaps); any other extent stays scalar. VectorizeLong loops over whole vectors and leaves the rest to VectorizeTile.
void VectorizeTile(Schedule& schedule, LoopRV loop, int64_t lanes);
void VectorizeLong(Schedule& schedule, LoopRV loop, int64_t lanes);

// The side of squares that are transposed in registers, in elements of at least eight bits: as many rows as a register
// has lanes, at most 16 of narrow ones.
int64_t SquareSide(int bits, const Target& target);

// The loops around the block that are inside of `outer`, outermost first, each with the iteration variable it binds
// (-1: none).
struct InnerLoop {
  LoopRV loop;
  int iter = -1;
};
HandleList<InnerLoop> InnerLoops(Schedule& schedule, BlockRV block, LoopRV outer);
// Whether the loop binds a reduction variable of the block.
bool Reduces(const BlockSite& site, const InnerLoop& loop);
// The loops around the block that are inside of `outer`, parted into those that reduce and the others.
struct LoopsBelow {
  std::vector<LoopRV> spatial, reducing;
};
LoopsBelow FindLoopsBelow(Schedule& schedule, BlockRV block, LoopRV outer);
// Fuses the loops around the block that reduce, of which there is one at least, and puts them inside of the others.
LoopRV FuseReducing(Schedule& schedule, BlockRV block);

// The outermost reduction loop of a reduction that still has its initialisation and may have no iteration (an axis of
// symbolic extent); null where the initialisation runs in any case.
LoopVar LoopOfEmptyReduction(const BlockSite& site);

}  // namespace ingot::schedule
