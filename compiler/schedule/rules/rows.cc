// Reductions along rows: softmax, layer normalisation, sums and means over the last axes. All stages of the function
// run row by row, so that a row stays in the cache between them: every stage but the last is computed at the loop over
// rows. A reduction whose innermost axis is contiguous keeps one partial result per vector lane (rfactor) and joins
// them at the end.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// The leading dimensions that all stages share.
int SharedDimensions(const std::vector<BlockSite>& sites) {
  arith::Analyzer analyzer;
  const BufferStoreNode& last = StoreOf(sites.back());
  int shared = static_cast<int>(last.indices.size());
  for (const BlockSite& site : sites) {
    const BufferStoreNode& store = StoreOf(site);
    int d = 0;
    while (d < shared && d < static_cast<int>(store.indices.size()) && IterOfDimension(site, d) >= 0 &&
           analyzer.ProveEqual(store.buffer->shape[d], last.buffer->shape[d])) {
      ++d;
    }
    shared = d;
  }
  return shared;
}

// Nothing of a reduction's result but the shared dimensions is longer than one.
bool ReducesWholeRows(const ScheduleState& state, const std::vector<BlockSite>& sites, int shared) {
  for (const BlockSite& site : sites) {
    if (!IsReduction(state, site)) continue;
    const std::vector<PrimExpr>& shape = StoreOf(site).buffer->shape;
    for (size_t d = shared; d < shape.size(); ++d) {
      if (!IsConstInt(shape[d], 1)) return false;
    }
  }
  return true;
}

// Its innermost reduction variable moves along the rows of its inputs one by one.
bool ReducesContiguously(const BlockSite& site) {
  const int k = ReduceIters(site).back();
  const std::vector<LoadUse> loads = LoadsOf(site);
  return std::all_of(loads.begin(), loads.end(), [&](const LoadUse& load) {
    return !load.outside_last[k] && load.last_coefficient[k] && (*load.last_coefficient[k] == 1 || !load.uses[k]);
  });
}

// Partial results by lane; returns the block that makes them, or a void one where vectors do not pay.
BlockRV MakeLanes(Schedule& s, const BlockName& name, int64_t lanes) {
  const BlockRV block = s.GetBlock(name);
  const BlockSite site = s.Block(block);
  const int k = ReduceIters(site).back();
  const std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[k]);
  if (!ReducesContiguously(site) || (extent && *extent < 2 * lanes)) return {};
  LoopRV loop;
  for (const InnerLoop& entry : InnerLoops(s, block, LoopRV{})) {
    if (entry.iter == k) loop = entry.loop;
  }
  return s.RFactor(s.Split(loop, {kRest, lanes})[1]);
}

}  // namespace

bool MatchesRows(const ScheduleState& state, const BlockSite& site, const Target&) {
  if (!IsReduction(state, site)) return false;
  const std::vector<BlockSite> sites = state.Blocks();
  for (size_t i = 0; i < sites.size(); ++i) {
    if (!IsInjective(state, sites[i]) && !IsReduction(state, sites[i])) return false;
    if (WritesOutput(state, sites[i]) != (i + 1 == sites.size())) return false;
  }
  const int shared = SharedDimensions(sites);
  return ReducesWholeRows(state, sites, shared);
}

std::vector<BlockName> ApplyRows(Schedule& s, const BlockName&, const Target& target) {
  const std::vector<BlockSite> sites = s.state().Blocks();
  const int shared = SharedDimensions(sites);
  const BlockName last_name = sites.back().block().name;
  std::vector<BlockName> handled;
  int64_t row_cost = 0;
  std::vector<std::pair<BlockRV, int64_t>> lane_blocks;
  for (const BlockSite& site : sites) {
    handled.push_back(site.block().name);
    int64_t cost = KnownInstances(site) * CostOfInstance(site);
    for (int d = 0; d < shared; ++d) {
      const std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[IterOfDimension(site, d)]);
      cost /= std::max<int64_t>(extent.value_or(1), 1);
    }
    row_cost += cost;
    if (!IsReduction(s.state(), site)) continue;
    const int64_t lanes = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
    const BlockRV partial = MakeLanes(s, site.block().name, lanes);
    if (!s.status().ok()) return handled;
    if (s.IsVoid(partial)) continue;
    lane_blocks.push_back({partial, lanes});
    handled.push_back(s.Block(partial).block().name);
  }
  // The loop over rows, of the last stage.
  const BlockRV last = s.GetBlock(last_name);
  LoopRV row;
  std::vector<LoopRV> outer;
  const std::vector<InnerLoop> loops = InnerLoops(s, last, LoopRV{});
  if (!s.status().ok()) return handled;
  const BlockSite last_site = s.Block(last);
  for (const InnerLoop& entry : loops) {
    for (int d = 0; d < shared; ++d) {
      if (entry.iter == IterOfDimension(last_site, d)) outer.push_back(entry.loop);
    }
  }
  if (!outer.empty()) {
    row = outer.size() > 1 ? s.Fuse(outer) : outer[0];
  } else if (!loops.empty()) {
    row = s.Split(loops[0].loop, {int64_t{1}, kRest})[0];
  } else {
    row = s.AddUnitLoop(last);
  }
  std::vector<BlockSite> stages = s.state().Blocks();
  for (size_t i = stages.size(); i-- > 0;) {
    if (!s.status().ok()) return handled;
    const BlockName& name = stages[i].block().name;
    if (name != last_name) s.ComputeAt(s.GetBlock(name), row);
  }
  // Vectors along the row.
  for (const BlockSite& stage : s.state().Blocks()) {
    if (!s.status().ok()) return handled;
    if (!IsInjective(s.state(), stage) || ReadsUnderCondition(stage)) continue;
    const std::vector<InnerLoop> inner = InnerLoops(s, s.GetBlock(stage.block().name), row);
    if (inner.empty()) continue;
    VectorizeLong(s, inner.back().loop, target.vector_lanes(StoreOf(stage).buffer->dtype.bits));
  }
  for (const auto& [block, lanes] : lane_blocks) {
    std::vector<LoopRV> order;
    LoopRV lane;
    const std::vector<InnerLoop> inner = InnerLoops(s, block, row);
    if (!s.status().ok()) return handled;
    const BlockSite site = s.Block(block);
    const int lane_iter = IterOfDimension(site, StoreOf(site).indices.size() - 1);
    for (const InnerLoop& entry : inner) {
      if (entry.iter == lane_iter) {
        lane = entry.loop;
      } else {
        order.push_back(entry.loop);
      }
    }
    order.push_back(lane);
    if (order.size() > 1) s.Reorder(order);
    s.Vectorize(lane);
  }
  // Initialisations before the loops that they would be tested in.
  for (const BlockSite& stage : s.state().Blocks()) {
    if (!s.status().ok()) return handled;
    if (!stage.block().init) continue;
    const BlockRV block = s.GetBlock(stage.block().name);
    LoopRV first;
    for (const InnerLoop& entry : InnerLoops(s, block, row)) {
      const bool reduces = entry.iter >= 0 && stage.block().iter_vars[entry.iter]->type == IterType::kReduce;
      if (reduces && s.IsVoid(first)) first = entry.loop;
    }
    if (!s.IsVoid(first)) s.DecomposeReduction(block, first);
  }
  ParallelizeByCost(s, row, row_cost);
  return handled;
}

}  // namespace ingot::schedule
