// Element-wise stages that read along another axis than they write (transpositions, layout conversions, also with
// arithmetic). The axes fall into runs through which every access moves by constant steps; the run along which it
// stores, x, and the one along which it loads, y, are cut into squares of one vector register's lanes, which are
// transposed in registers (vectorize.cc), in blocks of two by two so that cache lines are used up. The rests at the
// borders run in vectors along either axis.
#include <algorithm>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

struct TransposeRuns {
  std::vector<std::vector<int>> runs;
  size_t y = 0;  // position in runs; x is the last run
};

std::vector<int> AllDimensions(const BlockSite& site) {
  std::vector<int> iters;
  for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
    const int iter = IterOfDimension(site, d);
    if (iter >= 0) iters.push_back(iter);
  }
  return iters;
}

Match<TransposeRuns> FindRuns(const BlockSite& site) {
  Contiguity contiguity(site);
  TransposeRuns result{contiguity.Runs(AllDimensions(site)), 0};
  if (result.runs.size() < 2) return Declined{"every access moves through all of its axes by constant steps"};
  const int x = contiguity.Innermost(result.runs.back());
  bool found = false;
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, x);
    if (access.load == nullptr) {
      if (step != 1) return Declined{"it does not store side by side"};
      continue;
    }
    if (step && (*step == 0 || *step == 1)) continue;  // a single element, or contiguous along x as the store is
    size_t y = result.runs.size();
    for (size_t r = 0; r + 1 < result.runs.size(); ++r) {
      if (contiguity.Step(access, contiguity.Innermost(result.runs[r])) == 1) y = r;
    }
    if (y == result.runs.size()) return Declined{"an input is contiguous along none of its axes"};
    if (found && y != result.y) return Declined{"its inputs are contiguous along different axes"};
    result.y = y;
    found = true;
  }
  if (!found) return Declined{"its inputs lie along the axis along which it stores"};
  for (size_t r : {result.y, result.runs.size() - 1}) {
    const std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[contiguity.Innermost(result.runs[r])]);
    if (result.runs[r].size() == 1 && extent && *extent < 4) return Declined{"an axis has fewer than 4 elements"};
  }
  return result;
}

// The side of the squares: as many rows as a register has lanes of the widest elements, at most 16 for narrow ones.
int64_t SquareSide(const BlockSite& site, const Target& target) {
  int bits = std::max(static_cast<int>(StoreOf(site).buffer->dtype.bits), 8);
  for (const LoadUse& use : LoadsOf(site)) bits = std::max(bits, static_cast<int>(use.load->buffer->dtype.bits));
  const int64_t lanes = target.vector_lanes(bits);
  return bits >= 32 ? lanes : std::min<int64_t>(lanes, 128 / bits);
}

// A loop cut into pairs of `side` iterations: outer, middle (the two of a pair), inner. Without pairs, middle is void.
struct Cut {
  LoopRV outer, middle, inner;
};
Cut CutInSquares(Schedule& s, LoopRV loop, int64_t side) {
  const auto extent = AsConstInt(s.Loop(loop).loop->extent);
  if (extent && *extent % (2 * side) == 0) {
    const LoopRVs loops = s.Split(loop, {kRest, int64_t{2}, side});
    return {loops[0], loops[1], loops[2]};
  }
  const LoopRVs loops = s.Split(loop, {kRest, side});
  return {loops[0], LoopRV{}, loops[1]};
}

}  // namespace

Match<> MatchesTranspose(const ScheduleState& state, const BlockSite& site, const Target&) {
  const Match<> injective = AsInjective(state, site);
  if (!injective) return injective;
  if (ReadsUnderCondition(site)) return Declined{"it reads under conditions"};
  return FindRuns(site).As(Taken{});
}

std::vector<BlockName> ApplyTranspose(Schedule& s, const BlockSite& site, const Target& target) {
  const BlockRV block = s.GetBlock(site.block().name);
  const TransposeRuns runs = *FindRuns(site);
  const HandleList<InnerLoop> loops = InnerLoops(s, block, LoopRV{});
  std::vector<LoopRV> order, others;
  LoopRV x, y;
  for (size_t r = 0; r < runs.runs.size(); ++r) {
    const LoopRV loop = FuseIters(s, loops, runs.runs[r]);
    if (r == runs.y) {
      y = loop;
    } else if (r + 1 == runs.runs.size()) {
      x = loop;
    } else {
      others.push_back(loop);
    }
  }
  order = others;
  order.push_back(y);
  order.push_back(x);
  s.Reorder(order);
  const int64_t side = SquareSide(site, target);
  const int64_t element_cost = CostOfInstance(site);
  const LoopRV around = others.size() > 1 ? s.Fuse(others) : others.empty() ? LoopRV{} : others[0];
  const Schedule::Parts rows = s.LoopPartition(y, side);
  LoopRV strips;
  if (!s.IsVoid(rows.main)) {
    const Cut cut_y = CutInSquares(s, rows.main, side);
    strips = cut_y.outer;
    // Inside of the strip: x, then the strip's rows.
    std::vector<LoopRV> below{cut_y.outer, x};
    if (!s.IsVoid(cut_y.middle)) below.push_back(cut_y.middle);
    below.push_back(cut_y.inner);
    s.Reorder(below);
    const Schedule::Parts columns = s.LoopPartition(x, side);
    if (!s.IsVoid(columns.main)) {
      const Cut cut_x = CutInSquares(s, columns.main, side);
      std::vector<LoopRV> square{cut_x.outer};
      if (!s.IsVoid(cut_y.middle)) square.push_back(cut_y.middle);
      if (!s.IsVoid(cut_x.middle)) square.push_back(cut_x.middle);
      square.push_back(cut_y.inner);
      square.push_back(cut_x.inner);
      s.Reorder(square);
      s.Vectorize(cut_x.inner);
      s.Vectorize(cut_y.inner);
    }
    if (!s.IsVoid(columns.tail)) {  // vectors along y: contiguous loads, elements stored one by one
      s.Vectorize(s.GetLoops(s.GetChildBlocks(columns.tail)[0]).back());
    }
  }
  if (!s.IsVoid(rows.tail)) {  // along x
    VectorizeRun(s, s.GetLoops(s.GetChildBlocks(rows.tail)[0]).back(), {side, 1});
  }
  int64_t cost = element_cost * KnownInstances(site);
  if (!s.IsVoid(around) && !IsConstInt(s.Loop(around).loop->extent, 1)) {
    const auto extent = AsConstInt(s.Loop(around).loop->extent);
    ParallelizeByCost(s, around, cost / std::max<int64_t>(extent ? *extent : 1, 1));
  } else if (!s.IsVoid(strips)) {
    const auto extent = AsConstInt(s.Loop(strips).loop->extent);
    ParallelizeByCost(s, strips, cost / std::max<int64_t>(extent ? *extent : 1, 1));
  }
  return {site.block().name};
}

}  // namespace ingot::schedule
