// Element-wise work: what each element is made of lies at computable places. Stages that cost nothing, or feed nothing
// but element-wise stages, are inlined, so that a fused group is one pass over memory; what is left runs row by row, in
// vectors along the last axis, rows in parallel when there are enough of them.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

bool MatchesInline(const ScheduleState& state, const BlockSite& site, const Target&) {
  if (!IsInjective(state, site) || WritesOutput(state, site)) return false;
  const std::vector<BlockSite> readers = state.Readers(StoreOf(site).buffer);
  const bool only_injective =
      std::all_of(readers.begin(), readers.end(), [&](const BlockSite& reader) { return IsInjective(state, reader); });
  return !readers.empty() && (only_injective || (IsPlainMove(site) && !ReadsUnderCondition(site)));
}

std::vector<BlockName> ApplyInline(Schedule& s, const BlockName& name, const Target&) {
  s.ComputeInline(s.GetBlock(name));
  return {name};
}

bool MatchesElementwise(const ScheduleState& state, const BlockSite& site, const Target&) {
  return IsInjective(state, site) && !site.loops.empty();
}

std::vector<BlockName> ApplyElementwise(Schedule& s, const BlockName& name, const Target& target) {
  const BlockRV block = s.GetBlock(name);
  const BlockSite site = s.Block(block);
  std::vector<LoopRV> loops = s.GetLoops(block);
  if (!s.status().ok()) return {name};
  const int64_t lanes = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
  const int64_t element_cost = CostOfInstance(site);
  const LoopRV inner = loops.back();
  const int64_t* inner_extent = AsConstInt(s.Loop(inner).loop->extent);
  const int64_t row_cost = element_cost * (inner_extent != nullptr ? *inner_extent : 1);
  loops.pop_back();
  // Padding reads under conditions: partition_loops makes the inside of each row free of them.
  const bool vectorize = !ReadsUnderCondition(site);
  if (loops.empty()) {
    if (!vectorize) {
      ParallelizeByCost(s, inner, element_cost);
      return {name};
    }
    if (inner_extent != nullptr && *inner_extent <= 2 * lanes) {
      VectorizeTile(s, inner, lanes);
      return {name};
    }
    const Schedule::Parts parts = s.LoopPartition(inner, lanes);
    const std::vector<LoopRV> tiles = s.Split(parts.main, {kRest, lanes});
    s.Vectorize(tiles[1]);
    ParallelizeByCost(s, tiles[0], element_cost * lanes);
    VectorizeTile(s, parts.tail, lanes);
    return {name};
  }
  const LoopRV rows = loops.size() > 1 ? s.Fuse(loops) : loops[0];
  if (vectorize) VectorizeLong(s, inner, lanes);
  ParallelizeByCost(s, rows, row_cost);
  return {name};
}

}  // namespace ingot::schedule
