// Element-wise stages that deal places out by their rest: element x comes from x // s of one of s rows, or every element
// is repeated s times (the last stage of transposed convolutions, resizing by whole numbers).
//
//   out[..., x] = f(rows[..., (x + c) % s, (x + c) // s])
//
// The loop over x is split by s: for each rest the elements come from consecutive places, in vectors, and go to every
// s-th. The rest behind the last whole group stays scalar.
#include <algorithm>

#include "compiler/schedule/rules/analysis.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMostRests = 8;

// Finds the number by which every index that depends on a variable divides it, as quotient or rest of the variable plus
// a constant; 0: another use, or another number.
class DivisorFinder : public PrimVisitor {
 public:
  explicit DivisorFinder(const PrimVar& var) : var_(var) {}
  std::optional<int64_t> divisor;
  bool has_quotient = false;

  void VisitPrim(const PrimExpr& expr) override {
    if (const auto* division = As<BinaryNode>(expr);
        division != nullptr && (division->op == BinaryOp::kFloorDiv || division->op == BinaryOp::kFloorMod) &&
        IsVarPlusConstant(division->a)) {
      const std::optional<int64_t> number = AsConstInt(division->b);
      has_quotient |= division->op == BinaryOp::kFloorDiv;
      divisor = number && divisor.value_or(*number) == *number ? *number : 0;
      return;
    }
    if (expr.get() == static_cast<const void*>(var_.get())) divisor = 0;
    PrimVisitor::VisitPrim(expr);
  }

 private:
  bool IsVarPlusConstant(const PrimExpr& expr) const {
    const auto* sum = As<BinaryNode>(expr);
    const bool is_sum =
        sum != nullptr && (sum->op == BinaryOp::kAdd || sum->op == BinaryOp::kSub) && AsConstInt(sum->b);
    return (is_sum ? sum->a : expr).get() == static_cast<const void*>(var_.get());
  }
  const PrimVar& var_;
};

// The number of rests of the last axis; 0 where the stage is of another kind.
int64_t RestsOf(const BlockSite& site) {
  const size_t rank = StoreOf(site).indices.size();
  const int last = rank == 0 ? -1 : IterOfDimension(site, rank - 1);
  if (last < 0) return 0;
  bool has_quotient = false;
  int64_t rests = 0;
  for (const LoadUse& use : LoadsOf(site)) {
    if (!use.uses[last] || use.last_coefficient[last] == 1) continue;  // the same for all x, or side by side with it
    DivisorFinder finder(site.block().iter_vars[last]->var);
    for (const PrimExpr& index : use.load->indices) finder.VisitPrim(index);
    const int64_t divisor = finder.divisor.value_or(0);
    if (divisor < 2 || divisor > kMostRests || (rests != 0 && rests != divisor)) return 0;
    rests = divisor;
    has_quotient |= finder.has_quotient;
  }
  return has_quotient ? rests : 0;
}

}  // namespace

bool MatchesInterleave(const ScheduleState& state, const BlockSite& site, const Target&) {
  return IsInjective(state, site) && !ReadsUnderCondition(site) && RestsOf(site) != 0;
}

std::vector<BlockName> ApplyInterleave(Schedule& s, const BlockSite& site, const Target& target) {
  const int64_t rests = RestsOf(site);
  const int last = IterOfDimension(site, StoreOf(site).indices.size() - 1);
  const HandleList<InnerLoop> loops = InnerLoops(s, s.GetBlock(site.block().name), LoopRV{});
  std::vector<LoopRV> order;
  LoopRV x;
  for (const InnerLoop& entry : loops) {
    if (entry.iter == last) {
      x = entry.loop;
    } else {
      order.push_back(entry.loop);
    }
  }
  order.push_back(x);
  if (order.size() > 1) s.Reorder(order);
  order.pop_back();
  const LoopRV rows = order.size() > 1 ? s.Fuse(order) : order.empty() ? LoopRV{} : order[0];
  const int64_t lanes = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
  const Schedule::Parts parts = s.LoopPartition(x, rests);
  if (!s.IsVoid(parts.main)) {
    const LoopRVs split = s.Split(parts.main, {kRest, rests});
    s.Reorder({split[1], split[0]});
    s.Unroll(split[1]);
    VectorizeLong(s, split[0], lanes);
  }
  if (!s.IsVoid(rows)) {
    const auto extent = AsConstInt(s.Loop(rows).loop->extent);
    const int64_t cost = CostOfInstance(site) * KnownInstances(site);
    ParallelizeByCost(s, rows, cost / std::max<int64_t>(extent ? *extent : 1, 1));
  }
  return {site.block().name};
}

}  // namespace ingot::schedule
