// The rule for everything on CUDA: the block's independent iterations become the threads of one grid, 256 to a block;
// what it reduces over, or does one after the other, stays with the thread. Any block whose loops are its own has such
// a schedule: ranks and sizes do not matter, a grid's last block is cut off by a predicate. Those of a block that is more
// than a store are made parallel: which threads run what is in it is decided where it is lowered
// (transform/tensor/bind_threads).
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/rules.h"
#include "compiler/target/cuda.h"

namespace ingot::schedule {
namespace {

constexpr int64_t kThreadsOfBlock = 8 * kCudaWarpThreads;

}  // namespace

Match<> MatchesCudaThreads(const ScheduleState& state, const BlockSite& site, const Target&) {
  if (IsBoundToThreads(site)) return Declined{"it is bound to threads"};
  if (!state.IsRegular(site.block().name)) return Declined{"its bindings are not simple"};
  return Taken{};
}

std::vector<BlockName> ApplyCudaThreads(Schedule& schedule, const BlockSite& site, const Target&) {
  const BlockName& name = site.block().name;
  const BlockRV block = schedule.GetBlock(name);
  const LoopRVs loops = schedule.GetLoops(block);
  std::vector<LoopRV> spatial, others;
  for (size_t i = 0; i < site.loops.size(); ++i)
    (IsSpatialLoop(site, site.loops[i]) ? spatial : others).push_back(loops[i]);
  if (spatial.empty()) spatial.push_back(schedule.AddUnitLoop(block));
  std::vector<LoopRV> order = spatial;
  order.insert(order.end(), others.begin(), others.end());
  if (order.size() > 1) schedule.Reorder(order);
  const LoopRV fused = spatial.size() > 1 ? schedule.Fuse(spatial) : spatial[0];
  // Within an iteration that holds loops of its own others may be independent, too.
  if (ir::As<ir::BufferStoreNode>(site.block().body) == nullptr) {
    schedule.Parallel(fused);
    return {name};
  }
  const auto extent = ir::AsConstInt(schedule.Loop(fused).loop->extent);
  const int64_t threads = extent ? std::clamp<int64_t>(*extent, 1, kThreadsOfBlock) : kThreadsOfBlock;
  // A sum starts in front of its loops, not in their first iteration.
  if (site.block().init && !others.empty()) schedule.DecomposeReduction(block, others.front());
  const LoopRVs parts = schedule.Split(fused, {{}, threads});
  schedule.Bind(parts[0], "blockIdx.x");
  schedule.Bind(parts[1], "threadIdx.x");
  return {name};
}

}  // namespace ingot::schedule
