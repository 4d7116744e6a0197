// Element-wise stages whose formula has cases: an index, or its remainder modulo a constant, is compared with constants
// (the transformations of Winograd's convolution). Loops over such indices are unrolled inside of all others, so that
// the cases are decided at compile time and common parts of the formulas are computed once; vectors lie along the last
// axis. A producer that is read more than once, such as padding, is computed for each row of tiles.
#include <algorithm>
#include <map>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMostPhases = 8;      // of one index
constexpr int64_t kCostOfInstance = 4;  // of one case, without what it shares with others

// Finds the iteration variables (by position) that are compared with constants, and how many phases each has.
class PhaseFinder : public StmtVisitor {
 public:
  explicit PhaseFinder(const BlockSite& site) : site_(site) {}
  std::map<int, int64_t> phases;

 protected:
  using StmtVisitor::Visit;
  void Visit(const PrimCallNode& call) override {
    const auto* equal = call.op == Intrinsic::kIfThenElse ? As<BinaryNode>(call.args[0]) : nullptr;
    if (equal != nullptr && equal->op == BinaryOp::kEQ && AsConstInt(equal->b)) Add(equal->a);
    StmtVisitor::Visit(call);
  }

 private:
  void Add(const PrimExpr& index) {
    const auto* rest = As<BinaryNode>(index);
    const bool is_rest = rest != nullptr && rest->op == BinaryOp::kFloorMod && AsConstInt(rest->b);
    const PrimExpr& var = is_rest ? rest->a : index;
    for (size_t i = 0; i < site_.block().iter_vars.size(); ++i) {
      const IterVarNode& iter = *site_.block().iter_vars[i];
      if (iter.var.get() != var.get()) continue;
      const int64_t count = is_rest ? *AsConstInt(rest->b) : ConstantExtent(iter).value_or(kMostPhases + 1);
      if (count >= 1 && count <= kMostPhases) phases[static_cast<int>(i)] = count;
    }
  }
  const BlockSite& site_;
};

std::map<int, int64_t> PhasesOf(const BlockSite& site) {
  PhaseFinder finder(site);
  finder.VisitStmt(site.block().body);
  return finder.phases;
}

}  // namespace

bool HasPhases(const ScheduleState& state, const BlockSite& site) {
  return IsInjective(state, site) && !PhasesOf(site).empty();
}

Match<> MatchesPhases(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> injective = AsInjective(state, site);
  if (!injective) return injective;
  if (!HasPhases(state, site)) return Declined{"its formula has no cases by an index", true};
  if (StoreOf(site).indices.size() < 3) return Declined{"its result has fewer than 3 dimensions"};
  const int last = IterOfDimension(site, StoreOf(site).indices.size() - 1);
  if (last < 0 || PhasesOf(site).contains(last)) return Declined{"its cases are those of the last axis"};
  return Taken{};
}

std::vector<BlockName> ApplyPhases(Schedule& s, const BlockSite& site, const Target& target) {
  std::vector<BlockName> handled{site.block().name};
  const BlockRV block = s.GetBlock(site.block().name);
  const BlockRVs producers = s.GetProducers(block);
  const std::map<int, int64_t> phases = PhasesOf(site);
  const HandleList<InnerLoop> loops = InnerLoops(s, block, LoopRV{});
  // Floats of 16 bits are computed in float32.
  const DataType dtype = StoreOf(site).buffer->dtype;
  const int64_t lanes = target.vector_lanes(dtype.is_floating() ? std::max<int>(dtype.bits, 32) : dtype.bits);
  std::vector<LoopRV> around, unrolled;
  for (size_t i = 0; i + 1 < loops.size(); ++i) {
    const auto found = phases.find(loops[i].iter);
    const auto extent = AsConstInt(s.Loop(loops[i].loop).loop->extent);
    if (found == phases.end()) {
      around.push_back(loops[i].loop);
    } else if (extent && *extent <= found->second) {
      unrolled.push_back(loops[i].loop);
    } else {
      const LoopRVs parts = s.Split(loops[i].loop, {kRest, found->second});
      around.push_back(parts[0]);
      unrolled.push_back(parts[1]);
    }
  }
  // One vector at a time, so that the common parts of its phases fit the registers better.
  LoopRV vector = loops.back().loop;
  const auto width = AsConstInt(s.Loop(vector).loop->extent);
  if (width && *width > lanes && *width % lanes == 0) {
    const LoopRVs parts = s.Split(vector, {kRest, lanes});
    around.push_back(parts[0]);
    vector = parts[1];
  }
  std::vector<LoopRV> order = around;
  order.insert(order.end(), unrolled.begin(), unrolled.end());
  order.push_back(vector);
  s.Reorder(order);
  VectorizeTile(s, vector, lanes);
  for (LoopRV loop : unrolled) s.Unroll(loop);
  if (around.size() < 3) return handled;
  for (BlockRV producer : producers) {
    if (!IsInjective(s.state(), s.Block(producer))) continue;
    handled.push_back(s.Block(producer).block().name);
    s.ComputeAt(producer, around[2]);
    s.SetScope(producer, 0, "local");
    VectorizeTile(s, InnerLoops(s, producer, around[2]).back().loop, lanes);
  }
  const LoopRV task = s.Fuse({around[0], around[1]});
  const auto tasks = AsConstInt(s.Loop(task).loop->extent);
  ParallelizeByCost(s, task, KnownInstances(site) * kCostOfInstance / (tasks ? std::max<int64_t>(*tasks, 1) : 1));
  return handled;
}

}  // namespace ingot::schedule
