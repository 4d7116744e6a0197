// Element-wise stages that deal places out by their rest: element x comes from x // s of one of s rows, or every element
// is repeated s times (the last stage of transposed convolutions, resizing by whole numbers).
//
//   out[..., x] = f(rows[..., (x + c) % s, (x + c) // s])
//
// The loop over x is split by s: for each rest the elements come from consecutive places, in vectors, and go to every
// s-th. A last axis of a few elements is the same with the axis beside it. The rest behind the last whole group stays
// scalar.
#include <algorithm>
#include <utility>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

constexpr int64_t kMostRests = 8;
constexpr int64_t kMostLoadSteps = 4;  // elements so far apart are chosen from whole vectors

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

// A last axis of a few elements, beside an axis along which elements are contiguous where they come from (channels that
// become the last axis, blocks that become pixels).
struct ShortAxis {
  std::vector<int> groups;  // iteration variables that run as one
  int64_t rests;
};
Match<ShortAxis> FindShortAxis(const BlockSite& site) {
  std::vector<int> iters;
  for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
    const int iter = IterOfDimension(site, d);
    if (iter >= 0) iters.push_back(iter);
  }
  Contiguity contiguity(site);
  const std::vector<std::vector<int>> runs = contiguity.Runs(iters);
  if (runs.size() < 2) return Declined{"every access moves through all of its axes by constant steps"};
  const std::vector<int>& last = runs.back();
  const std::vector<int>& groups = runs[runs.size() - 2];
  const auto extent_of = [&](int iter) { return ConstantExtent(*site.block().iter_vars[iter]); };
  const int rest = contiguity.Innermost(last), group = contiguity.Innermost(groups);
  const int64_t rests = extent_of(rest).value_or(0);
  if (rests < 2 || rests > kMostRests || iters.back() != rest) return Declined{"its last axis has not 2 to 8 elements"};
  if (std::ranges::any_of(last, [&](int iter) { return iter != rest && extent_of(iter) != 1; })) {
    return Declined{"its last axis is joined with others"};
  }
  if (extent_of(group).value_or(kMostRests) < 4) {
    return Declined{"the axis beside the last one has fewer than 4 elements"};
  }
  bool moves = false;
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, group), along = contiguity.Step(access, rest);
    if (access.load == nullptr) {
      if (step != rests || along != 1) return Declined{"it does not store side by side"};
      continue;
    }
    const bool is_beside_store = step == rests && along == 1 && rests <= kMostLoadSteps;
    if (step != 0 && step != 1 && !is_beside_store) {
      return Declined{"an input is not contiguous along the axis beside the last one"};
    }
    moves |= step == 1;
  }
  if (!moves) return Declined{"no input is contiguous along the axis beside the last one"};
  return ShortAxis{groups, rests};
}

// Fuses the loops outside of groups (outermost first) into one that may run in parallel. The places in a fused loop are
// quotients: where extents are symbols, loops that are not needed for enough tasks stay inside, for themselves.
LoopRV FuseRows(Schedule& s, std::vector<LoopRV> rows) {
  constexpr int64_t kEnoughTasks = 16, kLikelyExtent = 32;
  const auto extent_of = [&](LoopRV row) { return AsConstInt(s.Loop(row).loop->extent); };
  if (std::ranges::any_of(rows, [&](LoopRV row) { return !extent_of(row); })) {
    int64_t tasks = 1;
    for (LoopRV row : rows) tasks *= std::min(extent_of(row).value_or(kLikelyExtent), kLikelyExtent);
    while (rows.size() > 1) {
      tasks /= std::max<int64_t>(std::min(extent_of(rows.back()).value_or(kLikelyExtent), kLikelyExtent), 1);
      if (tasks < kEnoughTasks) break;
      rows.pop_back();
    }
  }
  return rows.size() > 1 ? s.Fuse(rows) : rows.empty() ? LoopRV{} : rows[0];
}

// Cuts a loop over groups, with the loop over their rests inside, into vectors: the rests of a vector of groups are
// unrolled, and code generation stores the elements of all of them side by side.
void VectorizeGroups(Schedule& s, LoopRV groups, int64_t lanes) {
  const auto rests_of = [&](LoopRV part) { return s.GetLoops(s.GetChildBlocks(part)[0]).back(); };
  const auto is_whole = [&](LoopRV part, int64_t most) {
    const auto extent = AsConstInt(s.Loop(part).loop->extent);
    return extent && *extent <= most;
  };
  const auto vectorize_whole = [&](LoopRV part) {
    const LoopRV rests = rests_of(part);
    s.Reorder({rests, part});
    s.Unroll(rests);
    s.Vectorize(part);
  };
  if (is_whole(groups, 2 * lanes)) return vectorize_whole(groups);
  constexpr int64_t kLeastLanes = 4;
  for (int64_t width = lanes; width >= std::min(lanes, kLeastLanes); width /= 2) {
    const Schedule::Parts parts = s.LoopPartition(groups, width);
    if (!s.IsVoid(parts.main)) {
      const LoopRV rests = rests_of(parts.main);
      const LoopRVs split = s.Split(parts.main, {kRest, width});
      s.Reorder({split[0], rests, split[1]});
      s.Unroll(rests);
      s.Vectorize(split[1]);
    }
    if (s.IsVoid(parts.tail)) return;
    groups = parts.tail;
    if (is_whole(groups, lanes)) return vectorize_whole(groups);
  }
  s.Unroll(rests_of(groups));
}

}  // namespace

Match<> MatchesInterleave(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> injective = AsInjective(state, site);
  if (!injective) return injective;
  if (ReadsUnderCondition(site)) return Declined{"it reads under conditions"};
  if (RestsOf(site) != 0) return Taken{};
  return FindShortAxis(site).As(Taken{});
}

std::vector<BlockName> ApplyInterleave(Schedule& s, const BlockSite& site, const Target& target) {
  const int64_t lanes = target.vector_lanes(StoreOf(site).buffer->dtype.bits);
  const int last = IterOfDimension(site, StoreOf(site).indices.size() - 1);
  const HandleList<InnerLoop> loops = InnerLoops(s, s.GetBlock(site.block().name), LoopRV{});
  const int64_t instances = KnownInstances(site);
  const auto parallelize = [&](LoopRV rows) {
    if (s.IsVoid(rows)) return;
    const int64_t extent = AsConstInt(s.Loop(rows).loop->extent).value_or(1);
    ParallelizeByCost(s, rows, CostOfInstance(site) * instances / std::max<int64_t>(extent, 1));
  };
  const int64_t rests = RestsOf(site);
  if (rests == 0) {
    const ShortAxis axis = *FindShortAxis(site);
    std::vector<LoopRV> rows;
    for (const InnerLoop& entry : loops) {
      if (entry.iter != last && std::ranges::find(axis.groups, entry.iter) == axis.groups.end())
        rows.push_back(entry.loop);
    }
    const LoopRV groups = FuseIters(s, loops, axis.groups);
    const LoopRV row = FuseRows(s, std::move(rows));
    VectorizeGroups(s, groups, lanes);
    parallelize(row);
    return {site.block().name};
  }
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
  const LoopRV rows = FuseRows(s, std::move(order));
  const Schedule::Parts parts = s.LoopPartition(x, rests);
  if (!s.IsVoid(parts.main)) VectorizeGroups(s, s.Split(parts.main, {kRest, rests})[0], lanes);
  parallelize(rows);
  return {site.block().name};
}

}  // namespace ingot::schedule
