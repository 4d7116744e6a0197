// get_block, get_loops, get_child_blocks, get_producers: they find blocks and loops and change nothing.
#include <algorithm>

#include "compiler/schedule/primitives.h"

namespace ingot::schedule {

Result<BlockName> GetBlock(const ScheduleState& state, const std::string& name) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(name));
  return site.block().name;
}

Result<std::vector<LoopVar>> GetLoops(const ScheduleState& state, const BlockName& block) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(block));
  std::vector<LoopVar> loops;
  for (const For& loop : site.loops) loops.push_back(loop->var);
  return loops;
}

Result<std::vector<BlockName>> GetChildBlocks(const ScheduleState& state, const LoopVar& loop) {
  INGOT_ASSIGN_OR_RETURN(const LoopSite site, state.FindLoop(loop));
  std::vector<BlockName> blocks;
  for (const BlockSite& child : ScheduleState::BlocksIn(site.loop->body)) blocks.push_back(child.block().name);
  return blocks;
}

Result<std::vector<BlockName>> GetProducers(const ScheduleState& state, const BlockName& block) {
  INGOT_ASSIGN_OR_RETURN(const BlockSite site, state.FindBlock(block));
  std::vector<BlockName> blocks;
  for (const BlockSite& other : state.Blocks()) {
    if (other.realize.same_as(site.realize)) continue;
    const auto& reads = site.block().reads;
    const bool produces = std::any_of(
        reads.begin(), reads.end(), [&](const ir::BufferRegion& read) { return WritesTo(other.block(), read.buffer); });
    if (produces) blocks.push_back(other.block().name);
  }
  return blocks;
}

}  // namespace ingot::schedule
