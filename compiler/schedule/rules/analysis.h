// What rules want to know of a block, read off its statements: which kind of computation it is, how its loads move with
// an iteration variable, and what it costs.
#pragma once

#include <optional>
#include <vector>

#include "compiler/schedule/schedule.h"
#include "compiler/target/target.h"

namespace ingot::schedule {

// One store to elements that are each written once, from elements at computable places: no reduction, spatial variables
// that are its indices.
bool IsInjective(const ScheduleState& state, const BlockSite& site);
// One store that combines into the element chosen by the spatial variables, with an initialisation.
bool IsReduction(const ScheduleState& state, const BlockSite& site);
// The store's value is one load (moved, cast), so that inlining it anywhere costs nothing.
bool IsPlainMove(const BlockSite& site);
// The block reads its inputs under conditions (padding).
bool ReadsUnderCondition(const BlockSite& site);
// It writes a parameter of the function.
bool WritesOutput(const ScheduleState& state, const BlockSite& site);

const ir::BufferStoreNode& StoreOf(const BlockSite& site);

// Iteration variables by position in block.iter_vars.
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

// Elementary operations of one instance of the block (a multiply-add is one, exp and the like are ten).
int64_t CostOfInstance(const BlockSite& site);
// Instances, with symbolic extents as one: what is certainly there.
int64_t KnownInstances(const BlockSite& site);

// Thresholds in elementary operations. A fork-join costs a few microseconds; vector code does some 25 of them in a
// nanosecond at best and about one at worst.
inline constexpr int64_t kMinParallelCost = 256 << 10;  // of a whole nest; below, it stays serial
inline constexpr int64_t kMinTaskCost = 64 << 10;

// Runs the loop in parallel, in chunks so that a task costs kMinTaskCost at least, when all iterations are worth it. A
// symbolic number of iterations counts as many.
void ParallelizeByCost(Schedule& schedule, LoopRV loop, int64_t cost_of_iteration);

// Vectorizes a loop: its extent in vectors of `lanes` (unrolled when it is a constant tile of several), what is left in
// one shorter vector, a symbolic rest in scalars. The loop must be the innermost around one block. With
// `keep_whole`, a constant extent that is no multiple of lanes and at most two vectors becomes one odd vector.
void VectorizeTile(Schedule& schedule, LoopRV loop, int64_t lanes);
void VectorizeLong(Schedule& schedule, LoopRV loop, int64_t lanes);

// The loops around the block that are inside of `outer`, outermost first, each with the iteration variable it binds
// (-1: none).
struct InnerLoop {
  LoopRV loop;
  int iter;
};
std::vector<InnerLoop> InnerLoops(Schedule& schedule, BlockRV block, LoopRV outer);

// The outermost loop of a reduction that has its init still and may have no iteration (an axis of symbolic extent);
// null where the init surely runs.
LoopVar LoopOfEmptyReduction(const BlockSite& site);

}  // namespace ingot::schedule
