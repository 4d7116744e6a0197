// Element-wise stages that read along another axis than they write (transpositions, layout conversions, also with
// arithmetic). The axes fall into runs through which every access moves by constant steps; the run along which it
// stores, x, and the one along which it loads, y, are cut into squares of one vector register's lanes, which are
// transposed in registers (vectorize.cc), in blocks of two by two so that cache lines are used up. The rests at the
// borders run in vectors along either axis.
//
// A run that is shorter than a square takes in the run beside it: x the one through which the stores go on, y the one
// through which its loads go on. The other accesses divide to find their rows, once per square and row. Where a symbol
// tells whether it is (a batch is often 1), there is a version of the loops for either case.
#include <algorithm>

#include "compiler/schedule/rules/contiguity.h"
#include "compiler/schedule/rules/rules.h"

namespace ingot::schedule {

using namespace ir;  // NOLINT

namespace {

struct TransposeRuns {
  std::vector<std::vector<int>> runs;
  size_t y = 0;            // position in runs; x is the last run
  bool is_wide_x = false;  // x took in another run
};

std::vector<int> AllDimensions(const BlockSite& site) {
  std::vector<int> iters;
  for (size_t d = 0; d < StoreOf(site).indices.size(); ++d) {
    const int iter = IterOfDimension(site, d);
    if (iter >= 0) iters.push_back(iter);
  }
  return iters;
}

// Joins the runs `outer` and `inner`; the result stands where `inner` stood.
void JoinRuns(TransposeRuns& runs, size_t outer, size_t inner) {
  std::vector<int>& joined = runs.runs[inner];
  joined.insert(joined.begin(), runs.runs[outer].begin(), runs.runs[outer].end());
  runs.runs.erase(runs.runs.begin() + static_cast<std::ptrdiff_t>(outer));
  if (runs.y > outer) --runs.y;
}

// x takes in the run before it, where all go on that move along x. Returns whether it did.
bool WidenX(TransposeRuns& runs, Contiguity& contiguity) {
  const size_t x = runs.runs.size() - 1;
  if (x == 0 || runs.y == x - 1) return false;
  const int innermost = contiguity.Innermost(runs.runs[x]);
  for (const LinearAccess& access : contiguity.accesses()) {
    const std::optional<int64_t> step = contiguity.Step(access, innermost);
    if (!step || (*step != 0 && *step != 1)) continue;  // it moves along y
    if (!contiguity.Continues(access, runs.runs[x - 1], runs.runs[x])) return false;
  }
  JoinRuns(runs, x - 1, x);
  return runs.is_wide_x = true;
}

// y takes in the run through which all go on that move along y. Returns whether it did.
bool WidenY(TransposeRuns& runs, Contiguity& contiguity) {
  const std::vector<int> y = runs.runs[runs.y];
  const int x = contiguity.Innermost(runs.runs.back());
  for (size_t r = 0; r + 1 < runs.runs.size(); ++r) {
    if (r == runs.y) continue;
    const bool joins = std::ranges::all_of(contiguity.accesses(), [&](const LinearAccess& access) {
      const std::optional<int64_t> step = contiguity.Step(access, x);
      return (step && (*step == 0 || *step == 1)) || contiguity.Continues(access, runs.runs[r], y);
    });
    if (!joins) continue;
    JoinRuns(runs, r, runs.y);
    return true;
  }
  return false;
}

bool IsKnown(const BlockSite& site, const std::vector<int>& run) {
  return std::ranges::all_of(run, [&](int iter) { return ConstantExtent(*site.block().iter_vars[iter]).has_value(); });
}

// The known part of a run's length, a symbol counting as 1.
int64_t KnownLength(const BlockSite& site, const std::vector<int>& run) {
  int64_t length = 1;
  for (int iter : run) length *= ConstantExtent(*site.block().iter_vars[iter]).value_or(1);
  return length;
}

// Runs that are known to be shorter than a square become wider until they are as long or have taken in a symbol.
void WidenShort(TransposeRuns& runs, const BlockSite& site, Contiguity& contiguity, int64_t side) {
  const auto is_short = [&](const std::vector<int>& run) {
    return IsKnown(site, run) && KnownLength(site, run) < side;
  };
  while (is_short(runs.runs.back()) && WidenX(runs, contiguity)) continue;
  while (is_short(runs.runs[runs.y]) && WidenY(runs, contiguity)) continue;
}

// The side of the squares, of the widest elements.
int64_t SideOfWidest(const BlockSite& site, const Target& target) {
  int bits = std::max(static_cast<int>(StoreOf(site).buffer->dtype.bits), 8);
  for (const LoadUse& use : LoadsOf(site)) bits = std::max(bits, static_cast<int>(use.load->buffer->dtype.bits));
  return SquareSide(bits, target);
}

Match<TransposeRuns> FindRuns(const BlockSite& site, const Target& target) {
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
  WidenShort(result, site, contiguity, SideOfWidest(site, target));
  for (size_t r : {result.y, result.runs.size() - 1}) {
    const std::optional<int64_t> extent = ConstantExtent(*site.block().iter_vars[contiguity.Innermost(result.runs[r])]);
    if (result.runs[r].size() == 1 && extent && *extent < 4) return Declined{"an axis has fewer than 4 elements"};
  }
  return result;
}

// Other runs, and a formula over symbols that is 1 where they are to be preferred, 0 elsewhere.
struct Version {
  TransposeRuns runs;
  PrimExpr is_better;
};

// Versions for sizes at which a run of symbolic length is shorter than a square while the other one is worth the
// divisions.
std::vector<Version> Versions(const BlockSite& site, const TransposeRuns& runs, int64_t side) {
  Contiguity contiguity(site);
  const auto length = [&](const std::vector<int>& run) {
    PrimExpr product = Int64(1);
    for (int iter : run) product = product * Cast(DataType::Int(64), site.block().iter_vars[iter]->domain.extent);
    return product;
  };
  const auto at_least = [](const PrimExpr& size, int64_t least) { return Min(FloorDiv(size, Int64(least)), Int64(1)); };
  const std::vector<int>&x = runs.runs.back(), &y = runs.runs[runs.y];
  std::vector<Version> versions;
  const auto add = [&](const std::vector<int>& run, const std::vector<int>& other, auto widen) {
    TransposeRuns wide = runs;
    if (IsKnown(site, run) || KnownLength(site, run) >= side || !widen(wide, contiguity)) return;
    versions.push_back({std::move(wide), (Int64(1) - at_least(length(run), side)) * at_least(length(other), 4)});
  };
  add(x, y, WidenX);
  add(y, x, WidenY);
  return versions;
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

// The loops of each run, side by side.
std::vector<std::vector<LoopRV>> LoopsOfRuns(Schedule& s, BlockRV block, const std::vector<std::vector<int>>& runs) {
  const HandleList<InnerLoop> loops = InnerLoops(s, block, LoopRV{});
  std::vector<std::vector<LoopRV>> result;
  std::vector<LoopRV> order;
  std::vector<size_t> places;
  for (const std::vector<int>& run : runs) {
    result.emplace_back();
    for (int iter : run) {
      for (size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].iter != iter) continue;
        result.back().push_back(loops[i].loop);
        order.push_back(loops[i].loop);
        places.push_back(i);
      }
    }
  }
  if (!std::ranges::is_sorted(places)) s.Reorder(order);
  return result;
}

// Squares of the loops cut_y and cut_x, which are nested in some order in front of the rest of their parts.
void Transpose(Schedule& s, const Cut& cut_y, const Cut& cut_x) {
  std::vector<LoopRV> square;
  if (!s.IsVoid(cut_y.middle)) square.push_back(cut_y.middle);
  if (!s.IsVoid(cut_x.middle)) square.push_back(cut_x.middle);
  square.push_back(cut_y.inner);
  square.push_back(cut_x.inner);
  s.Reorder(square);
  s.Vectorize(cut_x.inner);
  s.Vectorize(cut_y.inner);
}

// The loops y { x }: strips of rows, which are cut in squares. Returns the loop over strips (void: there is none).
LoopRV CutRowsFirst(Schedule& s, LoopRV y, LoopRV x, int64_t side) {
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
    if (!s.IsVoid(columns.main)) Transpose(s, cut_y, CutInSquares(s, columns.main, side));
    if (!s.IsVoid(columns.tail)) {  // vectors along y: contiguous loads, elements stored one by one
      s.Vectorize(s.GetLoops(s.GetChildBlocks(columns.tail)[0]).back());
    }
  }
  if (!s.IsVoid(rows.tail)) {  // along x
    VectorizeRun(s, s.GetLoops(s.GetChildBlocks(rows.tail)[0]).back(), {side, 1});
  }
  return strips;
}

// The same the other way round, so that the rows which a square divides to find serve all of y.
LoopRV CutColumnsFirst(Schedule& s, LoopRV y, LoopRV x, int64_t side) {
  s.Reorder({x, y});
  const Schedule::Parts columns = s.LoopPartition(x, side);
  LoopRV strips;
  if (!s.IsVoid(columns.main)) {
    const Cut cut_x = CutInSquares(s, columns.main, side);
    strips = cut_x.outer;
    std::vector<LoopRV> below{cut_x.outer, y};
    if (!s.IsVoid(cut_x.middle)) below.push_back(cut_x.middle);
    below.push_back(cut_x.inner);
    s.Reorder(below);
    const Schedule::Parts rows = s.LoopPartition(y, side);
    if (!s.IsVoid(rows.main)) Transpose(s, CutInSquares(s, rows.main, side), cut_x);
    if (!s.IsVoid(rows.tail)) s.Vectorize(s.GetLoops(s.GetChildBlocks(rows.tail)[0]).back());  // along x
  }
  if (!s.IsVoid(columns.tail)) VectorizeRun(s, s.GetLoops(s.GetChildBlocks(columns.tail)[0]).back(), {side, 1});
  return strips;
}

// Schedules the block, a copy of the site's, in squares of these runs.
void ScheduleRuns(Schedule& s, BlockRV block, const BlockSite& site, const TransposeRuns& runs, int64_t side) {
  std::vector<LoopRV> order, others;
  LoopRV x, y;
  const std::vector<std::vector<LoopRV>> loops = LoopsOfRuns(s, block, runs.runs);
  for (size_t r = 0; r < runs.runs.size(); ++r) {
    const LoopRV loop = loops[r].size() > 1 ? s.Fuse(loops[r]) : LoopRVs(loops[r]).front();
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
  const LoopRV around = others.size() > 1 ? s.Fuse(others) : others.empty() ? LoopRV{} : others[0];
  const LoopRV strips = runs.is_wide_x ? CutColumnsFirst(s, y, x, side) : CutRowsFirst(s, y, x, side);
  const LoopRV parallel = !s.IsVoid(around) && !IsConstInt(s.Loop(around).loop->extent, 1) ? around : strips;
  if (s.IsVoid(parallel)) return;
  const auto extent = AsConstInt(s.Loop(parallel).loop->extent);
  const int64_t cost = CostOfInstance(site) * KnownInstances(site);
  ParallelizeByCost(s, parallel, cost / std::max<int64_t>(extent ? *extent : 1, 1));
}

}  // namespace

Match<> MatchesTranspose(const ScheduleState& state, const BlockSite& site, const Target& target) {
  const Match<> injective = AsInjective(state, site);
  if (!injective) return injective;
  if (ReadsUnderCondition(site)) return Declined{"it reads under conditions"};
  return FindRuns(site, target).As(Taken{});
}

std::vector<BlockName> ApplyTranspose(Schedule& s, const BlockSite& site, const Target& target) {
  const TransposeRuns runs = *FindRuns(site, target);
  const int64_t side = SideOfWidest(site, target);
  BlockRV block = s.GetBlock(site.block().name);
  const std::vector<Version> versions = Versions(site, runs, side);
  if (!versions.empty()) {
    LoopRV once = s.AddUnitLoop(block);
    std::vector<LoopRV> order{once};
    for (const InnerLoop& entry : InnerLoops(s, block, LoopRV{})) {
      if (entry.iter >= 0) order.push_back(entry.loop);
    }
    s.Reorder(order);
    for (const Version& version : versions) {
      const Schedule::Parts parts = s.PartitionAt(once, version.is_better);
      if (s.IsVoid(parts.tail)) break;
      const BlockRV rest = s.GetChildBlocks(parts.tail)[0];
      if (!s.IsVoid(parts.main)) ScheduleRuns(s, block, site, version.runs, side);
      block = rest;
      once = parts.tail;
    }
  }
  ScheduleRuns(s, block, site, runs, side);
  return {site.block().name};
}

}  // namespace ingot::schedule
