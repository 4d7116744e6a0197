// Reductions along rows: softmax, layer normalisation, sums and means over the last axes. All stages of the function
// run row by row, so that a row stays in the cache between them: every stage but the last is computed at the loop over
// rows. A reduction whose innermost axes are contiguous keeps one partial result per vector lane, in several registers
// (rfactor), and joins them at the end; what a row leaves over is masked, so that any length runs in vectors.
#include <algorithm>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

// Whether every dimension of a reduction's result other than the shared ones has the extent 1.
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

// How a reduction runs along its row. Its innermost axes, as far as every access moves through them by constant steps,
// are one loop.
struct Lanes {
  BlockName block;  // makes the partial results (rfactor), or is the reduction itself
  BlockName last;   // joins them; the same where the whole loop is one vector
  bool partial = false;
};

// A long row gets partial results by lane, in as many registers as keep additions in flight. A row of one or two
// registers is one vector, whose lanes are joined. Nothing where vectors do not pay.
// `accumulators`: that many registers; 0: as many as the length suggests.
std::optional<Lanes> MakeLanes(Schedule& s, const BlockName& name, int64_t accumulators, const Target& target) {
  const BlockRV block = s.GetBlock(name);
  const BlockSite site = s.state().FindBlock(name).value();
  Contiguity contiguity(site);
  const std::vector<int> run = contiguity.Runs(ReduceIters(site)).back();
  const int k = contiguity.Innermost(run);
  // A value that is computed from the place itself, as that of the best element is, has a vector of places.
  if (contiguity.Gathers(k) || (contiguity.IsUsedAlone(k) && ReadsUnderCondition(site))) return std::nullopt;
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, k);
    if (!step || (*step != 0 && *step != 1)) return std::nullopt;
  }
  std::optional<int64_t> extent = 1;
  for (int iter : run) {
    const std::optional<int64_t> length = ConstantExtent(*site.block().iter_vars[iter]);
    extent = length && extent ? std::optional(*extent * *length) : std::nullopt;
  }
  const VectorShape shape = ChooseVectors(site, target);
  constexpr int64_t kIterations = 3;  // at least so many of each accumulator
  if (extent && *extent < 4) return std::nullopt;
  const LoopRV loop = FuseIters(s, InnerLoops(s, block, LoopRV{}), run);
  if (extent && *extent <= 2 * shape.lanes) return Lanes{name, name};
  int64_t registers =
      extent ? std::clamp<int64_t>(*extent / shape.lanes / kIterations, 1, shape.registers) : (shape.registers + 1) / 2;
  if (accumulators > 0) registers = accumulators;
  const BlockRV partial = s.RFactor(s.Split(loop, {kRest, shape.lanes * registers})[1]);
  return Lanes{s.Block(partial).block().name, name, true};
}

// The cost of what the stage computes for one row; symbolic extents count as kUsualExtent.
int64_t CostOfRow(const BlockSite& site, int shared) {
  constexpr int64_t kUsualExtent = 64;
  int64_t cost = CostOfInstance(site);
  for (size_t i = 0; i < site.block().iter_vars.size(); ++i) {
    bool is_shared = false;
    for (int d = 0; d < shared; ++d) is_shared |= IterOfDimension(site, static_cast<size_t>(d)) == static_cast<int>(i);
    const int64_t extent = is_shared ? 1 : ConstantExtent(*site.block().iter_vars[i]).value_or(kUsualExtent);
    if (__builtin_mul_overflow(cost, extent, &cost)) return INT64_MAX / 16;
  }
  return cost;
}

}  // namespace

Match<> MatchesRows(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> reduction = AsReduction(state, site);
  if (!reduction) return reduction;
  const std::vector<BlockSite> sites = state.Blocks();
  for (size_t i = 0; i < sites.size(); ++i) {
    if (!IsInjective(state, sites[i]) && !IsReduction(state, sites[i])) {
      return Declined{"another stage is neither element-wise nor a reduction"};
    }
    if (WritesOutput(state, sites[i]) != (i + 1 == sites.size())) {
      return Declined{"another stage than the last one writes a result"};
    }
  }
  const int shared = SharedDimensions(sites);
  if (!ReducesWholeRows(state, sites, shared)) return Declined{"a stage keeps axes that other stages do not have"};
  return Taken{};
}

std::vector<BlockName> ApplyRows(Schedule& s, const BlockSite&, const Target& target) {
  const std::vector<BlockSite> sites = s.state().Blocks();
  const int shared = SharedDimensions(sites);
  const BlockName last_name = sites.back().block().name;
  std::vector<BlockName> handled;
  int64_t row_cost = 0;
  std::vector<Lanes> lanes;
  const int64_t accumulators = s.Choose("rows.accumulators", 0, {0, 1, 2, 4, 8});
  const bool has_others = std::ranges::any_of(sites, [&](const BlockSite& e) { return IsInjective(s.state(), e); });
  const int64_t registers = has_others ? s.Choose("rows.registers", 0, {0, 1, 2, 4, 8}) : 0;
  for (const BlockSite& site : sites) {
    handled.push_back(site.block().name);
    row_cost += CostOfRow(site, shared);
    if (!IsReduction(s.state(), site)) continue;
    const std::optional<Lanes> made = MakeLanes(s, site.block().name, accumulators, target);
    if (!made) continue;
    lanes.push_back(*made);
    handled.push_back(made->block);
  }
  // The last stage's loop over rows.
  const BlockRV last = s.GetBlock(last_name);
  LoopRV row;
  std::vector<LoopRV> outer;
  const HandleList<InnerLoop> loops = InnerLoops(s, last, LoopRV{});
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
  const std::vector<BlockSite> stages = s.state().Blocks();
  for (size_t i = stages.size(); i-- > 0;) {
    const BlockName& name = stages[i].block().name;
    if (name != last_name) s.ComputeAt(s.GetBlock(name), row);
  }
  // Element-wise stages run in vectors along the row.
  for (const BlockSite& stage : s.state().Blocks()) {
    if (!IsInjective(s.state(), stage)) continue;
    const HandleList<InnerLoop> inner = InnerLoops(s, s.GetBlock(stage.block().name), row);
    std::vector<int> own;  // axes of the row
    for (const InnerLoop& entry : inner) {
      bool is_shared = entry.iter < 0;
      for (int d = 0; d < shared; ++d) is_shared |= entry.iter == IterOfDimension(stage, d);
      if (!is_shared) own.push_back(entry.iter);
    }
    if (own.empty()) continue;
    VectorShape shape = ChooseVectors(stage, target);
    if (ReadsUnderCondition(stage)) shape.registers = 1;
    if (registers > 0) shape.registers = registers;
    VectorizeRun(s, FuseIters(s, inner, Contiguity(stage).Runs(own).back()), shape);
  }
  // Partial results have their lanes as the innermost loop.
  for (const Lanes& entry : lanes) {
    if (!entry.partial) continue;
    const BlockRV block = s.GetBlock(entry.block);
    const HandleList<InnerLoop> inner = InnerLoops(s, block, row);
    const BlockSite site = s.Block(block);
    const int lane_iter = IterOfDimension(site, StoreOf(site).indices.size() - 1);
    std::vector<LoopRV> order;
    LoopRV lane;
    for (const InnerLoop& loop : inner) {
      if (loop.iter == lane_iter) {
        lane = loop.loop;
      } else {
        order.push_back(loop.loop);
      }
    }
    order.push_back(lane);
    if (order.size() > 1) s.Reorder(order);
    s.Vectorize(lane);
  }
  // Initialisations are moved before the reduction loops, which need not test for them then.
  for (const BlockSite& stage : s.state().Blocks()) {
    if (!stage.block().init) continue;
    const BlockRV block = s.GetBlock(stage.block().name);
    LoopRV first;
    for (const InnerLoop& entry : InnerLoops(s, block, row)) {
      if (Reduces(stage, entry) && s.IsVoid(first)) first = entry.loop;
    }
    if (!s.IsVoid(first)) s.DecomposeReduction(block, first);
  }
  // The lanes of partial results are joined by a vectorized reduction.
  for (const Lanes& entry : lanes) {
    const HandleList<InnerLoop> inner = InnerLoops(s, s.GetBlock(entry.last), row);
    s.Vectorize(inner.back().loop);
  }
  ParallelizeByLikelyCost(s, row, row_cost);
  return handled;
}

}  // namespace ingot::schedule
